"""Topics of simulated profiles."""

import msgspec


class Niche(msgspec.Struct, frozen=True):
    category: str
    tags: tuple[str, ...]
    topics: tuple[str, ...]
    offers: tuple[str, ...]


NICHES: dict[str, Niche] = {
    "fitness": Niche(
        "Fitness Trainer",
        ("fitness", "strengthtraining", "homeworkout", "mobility", "personaltrainer", "running"),
        ("a slow squat", "morning mobility", "training after forty", "rest days", "meal plans that last"),
        ("Online coaching for busy people", "Strength programmes for beginners"),
    ),
    "food": Niche(
        "Restaurant",
        ("food", "sourdough", "seasonalcooking", "plantbased", "recipe", "localproduce"),
        ("sourdough that takes two days", "the first asparagus", "a soup for eight", "knife skills"),
        ("Supper club on Fridays", "Weekly recipes by mail"),
    ),
    "fashion": Niche(
        "Clothing (Brand)",
        ("fashion", "slowfashion", "linen", "capsulewardrobe", "madetolast", "tailoring"),
        ("linen in winter", "a coat for ten years", "mending as a habit", "the cutting table"),
        ("Small batches, made to order", "Patterns and workshops"),
    ),
    "travel": Niche(
        "Travel Company",
        ("travel", "nighttrain", "slowtravel", "hiking", "islands", "offseason"),
        ("night trains", "an island off season", "walking from hut to hut", "packing for six weeks"),
        ("Itineraries without flights", "Guided walks in small groups"),
    ),
    "beauty": Niche(
        "Beauty, Cosmetic & Personal Care",
        ("skincare", "sensitiveskin", "cleanbeauty", "spf", "makeup", "ingredients"),
        ("reading an ingredient list", "five minutes in the morning", "sensitive skin in winter"),
        ("Consultations by video", "Small shop with samples"),
    ),
    "coaching": Niche(
        "Coach",
        ("coaching", "leadership", "careerchange", "mindset", "founders", "burnout"),
        ("the first hundred days", "saying no at work", "a career change at forty", "founders who rest"),
        ("Coaching for first-time founders", "Group programme twice a year"),
    ),
    "property": Niche(
        "Real Estate Agent",
        ("realestate", "firsthome", "renovation", "interiordesign", "openhouse", "mortgage"),
        ("buying a first home", "what a survey finds", "a renovation diary", "light in small rooms"),
        ("Homes for first-time buyers", "Renovation advice by the hour"),
    ),
    "photography": Niche(
        "Photographer",
        ("photography", "filmphotography", "weddings", "portrait", "goldenhour", "darkroom"),
        ("one roll of film", "weddings in the rain", "portraits without posing", "the darkroom"),
        ("Weddings and portraits", "Prints in small editions"),
    ),
    "software": Niche(
        "Software Company",
        ("saas", "productdesign", "startup", "automation", "buildinpublic", "b2bmarketing"),
        ("the first ten customers", "pricing pages", "automating invoices", "support as marketing"),
        ("Tools for small agencies", "Marketing automation for B2B teams"),
    ),
    "parenting": Niche(
        "Blogger",
        ("parenting", "toddlerlife", "familymeals", "sleep", "playideas", "workingparents"),
        ("sleep at last", "lunch boxes", "play with what there is", "work and three children"),
        ("Courses for new parents", "A letter every Sunday"),
    ),
}
