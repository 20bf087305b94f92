from django.http import HttpRequest, HttpResponse


def tickets(request: HttpRequest) -> HttpResponse:
    return HttpResponse("")


def ticket(request: HttpRequest, reference: str) -> HttpResponse:
    return HttpResponse("")


def article(request: HttpRequest, slug: str) -> HttpResponse:
    return HttpResponse("")
