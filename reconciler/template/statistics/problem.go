package statistics

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	policyv1alpha1 "github.com/flotilla-io/flotilla/api/policy/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/policies/excerpt"
	"github.com/flotilla-io/flotilla/reconciler/templatestore"
)

// longest is the longest message of a problem, in bytes.
const longest = 512

// Problem is an error of a template or its binding.
type Problem struct {
	// Object is kind, namespace and name of the template.
	Object string
	// Message for users.
	Message string
	// At is when it began; zero if it existed at the start of the process.
	At time.Time
}

// mostUntaken is how many templates a condition names that a policy could not claim.
const mostUntaken = 3

// Naming returns a text that names the templates that a policy could not claim, with the reason of the first; empty for
// none.
func Naming(untaken []Problem) string {
	if len(untaken) == 0 {
		return ""
	}
	text := "it could not take up " + untaken[0].Object + ": " + untaken[0].Message
	var more []string
	for _, p := range untaken[1:min(len(untaken), mostUntaken)] {
		more = append(more, p.Object)
	}
	if len(more) > 0 {
		text += fmt.Sprintf("; nor %d more: %s", len(untaken)-1, strings.Join(more, ", "))
	}
	if len(untaken) > mostUntaken {
		text += " …"
	}
	return text
}

func problemOf(key templatestore.Key, message string, at time.Time) Problem {
	if message == "" {
		return Problem{}
	}
	message = excerpt.Bytes(message, longest)
	return Problem{Object: key.Kind + " " + strings.TrimPrefix(key.Namespace+"/"+key.Name, "/"), Message: message, At: at}
}

// applyFailure returns the message of the first cluster, by name, that refused the
// template; empty where none did.
func applyFailure(b workv1alpha2.Binding) string {
	var first workv1alpha2.AggregatedStatusItem
	for _, item := range b.BindingStatus().AggregatedStatus {
		failed := !item.Applied && item.AppliedMessage != ""
		if failed && (first.ClusterName == "" || item.ClusterName < first.ClusterName) {
			first = item
		}
	}
	if first.ClusterName == "" {
		return ""
	}
	return first.ClusterName + ": " + first.AppliedMessage
}

// Last returns the problem that began last, in whole seconds; nil if there is
// none. The one that was reported last stays unless another began after it.
func Last(reported *policyv1alpha1.PolicyProblem, problems []Problem, now time.Time) *policyv1alpha1.PolicyProblem {
	if len(problems) == 0 {
		return nil
	}
	latest := slices.MaxFunc(problems, func(a, b Problem) int {
		return cmp.Or(a.At.Compare(b.At), cmp.Compare(b.Object, a.Object), cmp.Compare(b.Message, a.Message))
	})
	if reported != nil && !latest.At.Truncate(time.Second).After(reported.At.Time) && slices.ContainsFunc(problems, func(p Problem) bool {
		return p.Object == reported.Object && p.Message == reported.Message
	}) {
		return reported
	}
	if latest.At.IsZero() {
		latest.At = now
	}
	return &policyv1alpha1.PolicyProblem{Object: latest.Object, Message: latest.Message, At: metav1.NewTime(latest.At.Truncate(time.Second))}
}
