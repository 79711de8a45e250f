package rollup

import (
	"strings"

	"github.com/flotilla-io/flotilla/policies/excerpt"
)

// longestCause is how many characters are repeated of what a member says, mark included: what is posted about a commit is short.
const longestCause = 120

// cause returns ": FailedCreate: pods are forbidden: …" where what a cluster reports of an object that is not ready says why,
// and empty where it does not: what ails single Pods is in no status.
func cause(status map[string]any) string {
	conditions, _ := status["conditions"].([]any)
	for _, entry := range conditions {
		c, _ := entry.(map[string]any)
		reason, _ := c["reason"].(string)
		message, _ := c["message"].(string)
		switch {
		case c["type"] == "ReplicaFailure" && c["status"] == "True":
		case c["type"] == "Progressing" && c["status"] == "False" && reason == "ProgressDeadlineExceeded":
			message = "" // says no more
		case c["type"] == "Ready" && c["status"] == "False" && message != "":
		default:
			continue
		}
		if text := strings.Trim(reason+": "+excerpt.Line(message), ": "); text != "" {
			return ": " + excerpt.Runes(text, longestCause)
		}
	}
	return ""
}
