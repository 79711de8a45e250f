package message

import (
	"encoding/json"

	notificationv1beta3 "github.com/fluxcd/notification-controller/api/v1beta3"
)

// Refused says why an answer of success is none, in words of this package; empty if it is one. Slack's API refuses so.
func Refused(kind string, answer []byte) string {
	if kind != notificationv1beta3.SlackProvider {
		return ""
	}
	var reply struct {
		OK    *bool  `json:"ok"`
		Error string `json:"error"`
	}
	if json.Unmarshal(answer, &reply) != nil || reply.OK == nil || *reply.OK {
		return "" // a webhook answers with a word
	}
	switch reply.Error {
	case "channel_not_found", "not_in_channel", "is_archived":
		return "Slack has no channel of that name for it (" + reply.Error + "): correct spec.channel, or invite the app there"
	case "invalid_auth", "not_authed", "token_revoked", "token_expired", "account_inactive", "missing_scope":
		return "Slack refuses the token (" + reply.Error + "): put one with the scope chat:write into the Secret"
	case "ratelimited", "rate_limited":
		return "Slack takes no more messages for a while"
	default:
		return "Slack refuses the message"
	}
}
