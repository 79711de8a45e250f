package explain

import (
	"fmt"
	"strings"

	"github.com/flotilla-io/flotilla/policies/symptom"
)

// look is the command that says more about one that is not healthy in clusters.
func (r Resource) look(s symptom.Symptom, clusters []string) string {
	in := ""
	if r.Namespace != "" {
		in = " -n " + r.Namespace
	}
	object := strings.ToLower(r.Kind) + "/" + r.Name
	if s.Denied {
		return "ask for the right to reach the clusters, or who has it for: flotilla explain " + object + in
	}
	switch s.Reason {
	case "CrashLoopBackOff", "OOMKilled", "Error":
		return fmt.Sprintf("see what it said before it ended: flotilla logs %s%s -C %s --previous", object, in, clusters[0])
	default:
		return fmt.Sprintf("see what happened there: flotilla events --for %s%s -C %s", object, in, strings.Join(clusters[:min(len(clusters), mostLooked)], ","))
	}
}

// mostLooked is how many clusters one command looks at.
const mostLooked = 3
