package remark

import (
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/util/duration"
)

// ClusterSilent is the reason of a Kustomization that waits to hear of a cluster.
const ClusterSilent = "ClusterSilent"

// Unheard is what to add to the remark that a cluster is silent: of how many templates, and of how many Kustomizations
// that wait for these, the state there is not known, and for how long. Empty for none.
func Unheard(templates, kustomizations int, since time.Duration) string {
	if templates == 0 {
		return ""
	}
	text := fmt.Sprintf("; the state of %s there", several(templates, "template"))
	if kustomizations > 0 {
		text += fmt.Sprintf(", and of %s with %s,", several(kustomizations, "Kustomization"), them(templates))
	}
	return text + " is unknown for " + duration.HumanDuration(max(since, 0))
}

func several(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

func them(n int) string {
	if n == 1 {
		return "it"
	}
	return "them"
}
