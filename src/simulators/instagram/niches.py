"""Topics of simulated profiles. The simulated models know the same topics."""

import msgspec


class Niche(msgspec.Struct, frozen=True, kw_only=True):
    name: str
    category: str  # as Instagram shows it
    persona: str
    audience: str
    tags: tuple[str, ...]
    topics: tuple[str, ...]
    offers: tuple[str, ...]


NICHES: dict[str, Niche] = {
    "fitness": Niche(
        name="strength and mobility",
        category="Fitness Trainer",
        persona="Strength and mobility coach",
        audience="adults who train at home and need plans that fit a working week",
        tags=("fitness", "strengthtraining", "homeworkout", "mobility", "personaltrainer", "running"),
        topics=("a slow squat", "morning mobility", "training after forty", "rest days", "simple meal plans"),
        offers=("Online coaching for busy people", "Strength programmes for beginners"),
    ),
    "food": Niche(
        name="seasonal home cooking",
        category="Chef",
        persona="Home cook",
        audience="people who cook at home, like to know where food comes from and save recipes",
        tags=("food", "sourdough", "seasonalcooking", "plantbased", "recipe", "localproduce"),
        topics=("a two-day sourdough", "the first asparagus", "a soup for eight", "knife skills"),
        offers=("Supper club on Fridays", "Weekly recipes by mail"),
    ),
    "fashion": Niche(
        name="slow fashion",
        category="Clothing (Brand)",
        persona="Clothing maker",
        audience="people who buy fewer clothes and want them to last",
        tags=("fashion", "slowfashion", "linen", "capsulewardrobe", "madetolast", "tailoring"),
        topics=("linen in winter", "a coat for ten years", "mending as a habit", "the cutting table"),
        offers=("Small batches, made to order", "Patterns and workshops"),
    ),
    "travel": Niche(
        name="slow travel",
        category="Travel Company",
        persona="Slow travel guide",
        audience="travellers who prefer trains and walks to flights",
        tags=("travel", "nighttrain", "slowtravel", "hiking", "islands", "offseason"),
        topics=("night trains", "an island off season", "walking from hut to hut", "packing for six weeks"),
        offers=("Itineraries without flights", "Guided walks in small groups"),
    ),
    "beauty": Niche(
        name="skincare",
        category="Beauty, Cosmetic & Personal Care",
        persona="Skincare adviser",
        audience="people with sensitive skin who read labels before they buy",
        tags=("skincare", "sensitiveskin", "cleanbeauty", "spf", "makeup", "ingredients"),
        topics=("reading an ingredient list", "a five-minute routine", "sensitive skin in winter"),
        offers=("Consultations by video", "Small shop with samples"),
    ),
    "coaching": Niche(
        name="career coaching",
        category="Coach",
        persona="Career coach",
        audience="founders and managers in the middle of a change at work",
        tags=("coaching", "leadership", "careerchange", "mindset", "founders", "burnout"),
        topics=(
            "the first hundred days",
            "saying no at work",
            "a career change at forty",
            "founders who rest",
        ),
        offers=("Coaching for first-time founders", "Group programme twice a year"),
    ),
    "property": Niche(
        name="first homes and renovation",
        category="Real Estate Agent",
        persona="Estate agent",
        audience="first-time buyers and people in the middle of a renovation",
        tags=("realestate", "firsthome", "renovation", "interiordesign", "openhouse", "mortgage"),
        topics=("buying a first home", "a building survey", "a renovation diary", "light in small rooms"),
        offers=("Homes for first-time buyers", "Renovation advice by the hour"),
    ),
    "photography": Niche(
        name="film photography",
        category="Photographer",
        persona="Photographer",
        audience="couples who plan a wedding and people who photograph on film",
        tags=("photography", "filmphotography", "weddings", "portrait", "goldenhour", "darkroom"),
        topics=("one roll of film", "weddings in the rain", "portraits without posing", "the darkroom"),
        offers=("Weddings and portraits", "Prints in small editions"),
    ),
    "software": Niche(
        name="software for small teams",
        category="Software Company",
        persona="Software founder",
        audience="founders and small agencies who follow how a product is built and sold",
        tags=("saas", "productdesign", "startup", "automation", "buildinpublic", "b2bmarketing"),
        topics=("the first ten customers", "pricing pages", "automating invoices", "support as marketing"),
        offers=("Tools for small agencies", "Marketing automation for B2B teams"),
    ),
    "parenting": Niche(
        name="family life",
        category="Blogger",
        persona="Parenting writer",
        audience="parents of young children who look for ideas that work on a weekday",
        tags=("parenting", "toddlerlife", "familymeals", "sleep", "playideas", "workingparents"),
        topics=("better sleep", "lunch boxes", "play without new toys", "work and three children"),
        offers=("Courses for new parents", "A letter every Sunday"),
    ),
}
