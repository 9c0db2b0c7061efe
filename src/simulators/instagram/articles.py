"""Simulated articles: each address always returns the same one."""

from html import escape
from urllib.parse import unquote, urlsplit

from simulators.instagram.niches import NICHES, Niche
from simulators.instagram.profiles import chance_of

PARAGRAPHS_MIN, PARAGRAPHS_MAX = 8, 30
PARAGRAPHS_A_HEADING = 4
SENTENCES = (
    "Most people begin with {topic} and only later ask why.",
    "What helps is to write down what you want from {topic} before you start.",
    "We asked readers about {topic}; every second one had tried it twice.",
    "The cost of {topic} is rarely money and often time.",
    "A week is enough to see whether {topic} suits you.",
    "There are two mistakes with {topic}: to hurry, and to wait for the right moment.",
    "None of this replaces advice by somebody who knows your case.",
    "Compare the results after a month, not after a day.",
)


def article(url: str) -> str:
    chance = chance_of("article", url)
    niche = NICHES[chance.choice(sorted(NICHES))]
    words = unquote(urlsplit(url).path).strip("/").rpartition("/")[2].rpartition(".")[0] or ""
    slug = (
        (words or unquote(urlsplit(url).path).strip("/").rpartition("/")[2])
        .replace("-", " ")
        .replace("_", " ")
    )
    title = escape((slug or f"{chance.choice(niche.topics)}, explained").strip().capitalize())
    body = [f"<h1>{title}</h1>"]
    for number in range(chance.randint(PARAGRAPHS_MIN, PARAGRAPHS_MAX)):
        if number % PARAGRAPHS_A_HEADING == 0:
            body.append(f"<h2>{escape(chance.choice(niche.topics)).capitalize()}</h2>")
        count = chance.randint(2, 5)
        sentences = [chance.choice(SENTENCES).format(topic=chance.choice(niche.topics)) for _ in range(count)]
        body.append(f"<p>{escape(' '.join(sentences))}</p>")
    return _page(title, niche, escape(url, quote=True), "\n".join(body))


def _page(title: str, niche: Niche, url: str, body: str) -> str:
    description = escape(f"{niche.category}: {niche.offers[0]}. {title}.", quote=True)
    return (
        f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><title>{title}</title>\n'
        f'<meta name="description" content="{description}">\n<link rel="canonical" href="{url}">\n'
        f"</head><body><main><article>\n{body}\n</article></main></body></html>\n"
    )
