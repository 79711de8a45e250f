package rollup

import (
	"strings"

	"github.com/flotilla-io/flotilla/policies/excerpt"
)

// longestCause is how many characters of a member's message are quoted, with the
// ellipsis: commit statuses are short.
const longestCause = 120

// cause returns, as in ": FailedCreate: pods are forbidden: …", why an object is not ready according to its status;
// empty where the status does not show it, as that of a workload whose Pods fail.
func cause(status map[string]any) string {
	conditions, _ := status["conditions"].([]any)
	for _, entry := range conditions {
		c, _ := entry.(map[string]any)
		reason, _ := c["reason"].(string)
		message, _ := c["message"].(string)
		switch {
		case c["type"] == "ReplicaFailure" && c["status"] == "True":
		case c["type"] == "Progressing" && c["status"] == "False" && reason == "ProgressDeadlineExceeded":
			message = "" // adds nothing to the reason
		case c["type"] == "Ready" && c["status"] == "False" && message != "":
		default:
			continue
		}
		if text := strings.Trim(reason+": "+excerpt.Line(excerpt.WithoutCredentials(message)), ": "); text != "" {
			return ": " + excerpt.Runes(text, longestCause)
		}
	}
	return ""
}
