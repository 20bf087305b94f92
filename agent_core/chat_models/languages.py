"""Whether a message is in another language than English. A cheap guess by small words."""

from __future__ import annotations

import re
from typing import Final


def _set(words: str) -> frozenset[str]:
    return frozenset(words.split())


_ENGLISH: Final = _set(
    "the a an of for to in and is are was what who how do does did please find refund charge "
    "open ticket export show search payment payments invoice customer last month help hello "
    "thanks it about because with this that on by from can you i list download status"
)
_FOREIGN: Final = _set(
    "bitte und der die das den dem ein eine einen ist sind nicht kein keine ich wir sie kunde "
    "kunden zahlung rechnung erstatte erstatten erstattung buche belaste zeige suche finde "
    "hallo danke warum wann wie letzte letzten für mit wegen zurück öffne exportiere guten "
    "tag veuillez merci bonjour le les des une est pas je nous vous remboursez rembourse "
    "rembourser paiement facture client pour avec dernier por favor gracias hola los las una "
    "el pago factura cliente reembolsa reembolsar cobra último per piacere grazie ciao il "
    "rimborsa pagamento fattura proszę obrigado reembolse alstublieft terugbetalen betaling"
)
# Small words that stand in names too say nothing.
_WORD: Final = re.compile(r"[^\W\d_]+")


def is_foreign(text: str) -> bool:
    """Tell whether the text is more likely in another language than in English."""
    words = [word.lower() for word in _WORD.findall(re.sub(r"\S*[@-]\S*", " ", text[:2000]))]
    english = sum(word in _ENGLISH for word in words)
    foreign = sum(word in _FOREIGN for word in words)
    if foreign > english:
        return len(words) > 1 or english == 0
    letters = [sign for sign in "".join(words) if sign.isalpha()]
    strange = sum(ord(sign) > 0x2AF for sign in letters)
    return bool(letters) and english == 0 and strange * 2 > len(letters)
