package placement

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/flotilla-io/flotilla/policies/placement/framework"
)

// Refusal says why a cluster does not fit.
type Refusal struct {
	Cluster, Plugin, Reason string
}

// FitError says that no cluster fits. It is not tried again until a cluster,
// the policy or the template changes.
type FitError struct {
	// Clusters is how many there are.
	Clusters int
	// Refusals has one entry for each of them, sorted by cluster.
	Refusals []Refusal
}

// Error counts the clusters by reason: "0/3 clusters are available: 2
// cluster(s) did not have the API resource, 1 …".
func (e *FitError) Error() string {
	if e.Clusters == 0 {
		return "0/0 clusters are available: no cluster has joined."
	}
	counts := map[string]int{}
	for _, r := range e.Refusals {
		counts[r.Reason]++
	}
	texts := make([]string, 0, len(counts))
	for reason, n := range counts {
		texts = append(texts, fmt.Sprintf("%d %s", n, reason))
	}
	slices.SortFunc(texts, cmp.Compare[string])
	return fmt.Sprintf("0/%d clusters are available: %s.", e.Clusters, strings.Join(texts, ", "))
}

// UnschedulableError says that clusters fit but lack room; a later try may
// succeed.
type UnschedulableError = framework.UnschedulableError
