from shared.errors import Conflict, NotFound


class LeadNotFound(NotFound):
    code = "lead_not_found"
    text = "The lead does not exist, or it belongs to another account."


class LeadAlreadyExists(Conflict):
    code = "lead_already_exists"
    text = (
        "@{username} was analysed again for the same business, which created another lead. Delete that lead"
        " before you restore this one."
    )
