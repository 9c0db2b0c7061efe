"""Required permission and ids of every operation. A route without a rule fails the tests."""

from dataclasses import dataclass, field
from typing import Literal, get_args

from features.auth.domain.roles import ALLOWED, Scope

USERS = ("owner", "admin", "member", "viewer", "operator")


@dataclass(frozen=True)
class Rule:
    """``needs`` is a permission or a mark. ``account`` is the place from which the operation takes its
    account.
    """

    needs: str
    account: Literal["header", "path", "none"] = "header"
    ids: dict[str, str] = field(default_factory=dict)  # path parameter: kind of object
    mark: str = ""  # set if the route's mark requires less than its use case
    not_for: tuple[str, ...] = ()  # roles that get 404 regardless of the mark
    before: tuple[str, ...] = ()  # operations that create what this one needs
    has: str = ""  # billing state that the operation needs to succeed
    body: dict[str, str] = field(default_factory=dict)  # replacements in the example
    body_ids: dict[str, str] = field(default_factory=dict)  # like ids, but in the body

    @property
    def things(self):
        return {**self.ids, **self.body_ids}

    @property
    def kind_of_account(self):
        return self.ids.get("account_id", "account")

    def allows(self, actor):
        """Returns whether the role table or the key's scopes allow the operation in the actor's own
        account.
        """
        if self.needs in ("public", "signed_in"):
            return True
        if self.needs == "operators_only":
            return actor == "operator"
        if actor in USERS:
            role = "owner" if actor == "operator" else actor
            return self.needs == "users_only" or role in ALLOWED[self.needs]
        return actor == "key" and self.needs in get_args(Scope)


def in_path(needs, **options):
    ids = {"account_id": "account", **options.pop("ids", {})}
    return Rule(needs, "path", ids, **options)


def on_profile(needs, kind="profile"):
    return Rule(needs, ids={"profile_id": kind})


def for_business(needs):
    return Rule(needs, body_ids={"business_profile_id": "profile"})


def on_lead(needs, kind="lead"):
    return Rule(needs, ids={"lead_id": kind})


def on_key(needs):
    return Rule(needs, ids={"key_id": "key"})


def on_run(needs, kind="run"):
    return Rule(needs, ids={"run_id": kind})


def on_endpoint(needs):
    return Rule(needs, ids={"endpoint_id": "endpoint"})


def on_delivery(needs):
    return Rule(needs, ids={"delivery_id": "delivery"})


def by_operator(*before):
    return in_path("operators_only", before=before)


RULES = {
    "getHealth": Rule("public", "none"),
    "getReadiness": Rule("public", "none"),
    "verifyToken": Rule("signed_in", "none"),
    "getMe": Rule("signed_in"),
    "listAccounts": Rule("users_only", "none"),
    "createAccount": Rule("users_only", "none"),
    "getAccount": in_path("account:read"),
    "renameAccount": in_path("account:update"),
    "deleteAccount": in_path("account:delete"),
    "restoreAccount": in_path(
        "users_only", ids={"account_id": "deleted_account"}, not_for=("admin", "member", "viewer")
    ),
    "listMembers": in_path("members:read"),
    "changeRole": in_path("members:manage", ids={"user_id": "member"}),
    # Every member may leave; the matrix removes other members.
    "removeMember": in_path("members:manage", ids={"user_id": "member"}, mark="members:read"),
    "inviteMember": in_path("members:manage"),
    "listInvitations": in_path("members:manage"),
    "withdrawInvitation": in_path("members:manage", ids={"invitation_id": "invitation"}),
    "acceptInvitation": Rule("users_only", "none", body={"token": "invitation_token"}),
    "createApiKey": Rule("api_keys:manage"),
    "listApiKeys": Rule("api_keys:read"),
    "getApiKey": on_key("api_keys:read"),
    "changeApiKey": on_key("api_keys:manage"),
    "rotateApiKey": on_key("api_keys:manage"),
    "revokeApiKey": on_key("api_keys:manage"),
    "createBusinessProfile": Rule("business_profiles:write"),
    "listBusinessProfiles": Rule("business_profiles:read"),
    "getBusinessProfile": on_profile("business_profiles:read"),
    "updateBusinessProfile": on_profile("business_profiles:write"),
    "deleteBusinessProfile": on_profile("business_profiles:write"),
    "restoreBusinessProfile": on_profile("business_profiles:write", "deleted_profile"),
    "getBusinessProfileContext": on_profile("business_profiles:read"),
    "startAnalysis": for_business("runs:write"),
    "startBulkAnalysis": for_business("runs:write"),
    "getBulkAnalysis": Rule("runs:read", ids={"run_id": "bulk"}),
    "startAnonymousAnalysis": Rule("public", "none"),
    "getAnonymousAnalysis": Rule("public", "none", {"token": "anonymous_token"}),
    "listLeads": Rule("leads:read"),
    "exportLeads": Rule("leads:read"),
    "getLead": on_lead("leads:read"),
    "listLeadAnalyses": on_lead("leads:read"),
    "deleteLead": on_lead("leads:write"),
    "restoreLead": on_lead("leads:write", "deleted_lead"),
    "listAnalyses": Rule("leads:read"),
    "getAnalysis": Rule("leads:read", ids={"analysis_id": "analysis"}),
    "getCreditBalance": Rule("credits:read"),
    "listCreditTransactions": Rule("credits:read"),
    "exportCreditTransactions": Rule("credits:read"),
    "grantCredits": by_operator(),
    "listPlans": Rule("public", "none"),
    "openCheckout": Rule("billing:manage"),
    "getCheckout": Rule("billing:read", ids={"checkout_id": "checkout"}),
    "openPortal": Rule("billing:manage", has="customer"),
    "getSubscription": Rule("billing:read"),
    "previewPlanChange": Rule("billing:manage", has="subscription"),
    "changePlan": Rule("billing:manage", has="subscription", body={"preview_id": "preview"}),
    "cancelSubscription": Rule("billing:manage", has="subscription"),
    "resumeSubscription": Rule("billing:manage", has="cancellation"),
    "listInvoices": Rule("billing:read"),
    "adjustCredits": by_operator("grantCredits"),
    "auditLedger": Rule("operators_only", "none"),
    "listCronJobs": Rule("operators_only", "none"),
    "listCronRuns": Rule("operators_only", "none", {"job": "cron_job"}),
    "getCronRun": Rule("operators_only", "none", {"job": "cron_job", "run_id": "cron_run"}),
    "runCronJob": Rule("operators_only", "none", {"job": "cron_job"}),
    "listAuditLog": Rule("operators_only", "none"),
    "reportSpenders": Rule("operators_only", "none"),
    "reportLatency": Rule("operators_only", "none"),
    "reportRefusals": Rule("operators_only", "none"),
    "reportCache": Rule("operators_only", "none"),
    "reportSuccess": Rule("operators_only", "none"),
    "reportCosts": Rule("operators_only", "none"),
    "getRunCosts": Rule("operators_only", "none", {"run_id": "run"}),
    "listRuns": Rule("runs:read"),
    "getRun": on_run("runs:read"),
    "streamRunEvents": on_run("runs:read", "cancelled_run"),  # a run whose stream ends
    "cancelRun": on_run("runs:write"),
    "retryRun": on_run("runs:write", "cancelled_run"),
    "getRefundPolicy": Rule("public", "none"),
    "receiveStripeEvent": Rule("public", "none"),
    "listWebhookEvents": Rule("operators_only", "none"),
    "getWebhookEvent": Rule("operators_only", "none", {"event_id": "event"}),
    "replayWebhookEvent": Rule("operators_only", "none", {"event_id": "event"}),
    "replayWebhookEvents": Rule("operators_only", "none"),
    "createWebhookEndpoint": Rule("webhooks:manage"),
    "listWebhookEndpoints": Rule("webhooks:read"),
    "getWebhookEndpoint": on_endpoint("webhooks:read"),
    "updateWebhookEndpoint": on_endpoint("webhooks:manage"),
    "deleteWebhookEndpoint": on_endpoint("webhooks:manage"),
    "getWebhookSecret": on_endpoint("webhooks:manage"),
    "rotateWebhookSecret": on_endpoint("webhooks:manage"),
    "enableWebhookEndpoint": on_endpoint("webhooks:manage"),
    "disableWebhookEndpoint": on_endpoint("webhooks:manage"),
    "testWebhookEndpoint": on_endpoint("webhooks:manage"),
    "replayFailedWebhooks": on_endpoint("webhooks:manage"),
    "listWebhookDeliveries": Rule("webhooks:read"),
    "getWebhookDelivery": on_delivery("webhooks:read"),
    "replayWebhookDelivery": on_delivery("webhooks:manage"),
}

# Parameters and fields that never contain one of our ids. A new name must be classified here.
HARMLESS_QUERIES = {
    *("limit", "deleted", "kind", "since", "until", "at", "share", "by", "dry_run", "status", "wait"),
    *("tier", "score_min", "score_max", "niche", "q", "analysis_type", "type", "sort", "api_keys"),
}
# the lead's field with that id
TRIED_QUERIES = {"business_profile_id": "business_profile_id", "lead_id": "id"}
TRIED_ELSEWHERE = {
    *("parent_id", "endpoint_id"),  # covered by the tests of the run and delivery lists
    *("operator_id", "account_id", "operation"),  # of the audit log and the inbox, for operators only
}
HARMLESS_HEADERS = {"If-Match", "If-None-Match", "Idempotency-Key", "Last-Event-ID"}
TRIED_HEADERS = {"Oslira-Account"}
OPAQUE_QUERIES = {"cursor"}  # contains a list position; tested with the victim's
FIELDS_TRIED = {"token", "reference", "business_profile_id"}
# The label of a key, and a preview's id, which is only compared: neither is used for a lookup.
FIELDS_WITHOUT_MEANING = {"project", "preview_id"}
