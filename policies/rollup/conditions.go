package rollup

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	workv1alpha1 "github.com/flotilla-io/flotilla/api/work/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/policies/excerpt"
)

// Bounds of messages that quote clusters.
const (
	mostFault = 512 // bytes of one quoted message
	mostNames = 5   // clusters that are named for one message
	mostTexts = 3   // different messages that are quoted
)

// interpreted returns the condition that reports which rules of the interpreter fail; false where none does. faults
// are those about the template itself; empty ones are skipped.
func interpreted(works []*workv1alpha1.Work, faults ...string) (metav1.Condition, bool) {
	var reported []string
	for _, fault := range faults {
		if fault != "" {
			reported = append(reported, excerpt.Message(fault, mostFault))
		}
	}
	failing := saying(works, workv1alpha1.WorkInterpreted, metav1.ConditionFalse)
	if len(failing) > 0 {
		reported = append(reported, messageOf(failing))
	}
	return metav1.Condition{
		Type: workv1alpha2.Interpreted, Status: metav1.ConditionFalse,
		Reason: workv1alpha1.WorkInterpreterFailedReason, Message: strings.Join(reported, "; "),
	}, len(reported) > 0
}

// drifted returns the condition that reports where members differ from what was applied or, if none does any more,
// where they did before it was reverted; false where there is neither.
func drifted(works []*workv1alpha1.Work) (metav1.Condition, bool) {
	c := metav1.Condition{Type: workv1alpha2.Drifted, Status: metav1.ConditionTrue, Reason: workv1alpha1.WorkDriftReportedReason}
	clusterReports := saying(works, workv1alpha1.WorkDrifted, metav1.ConditionTrue)
	if len(clusterReports) == 0 {
		c.Status, c.Reason = metav1.ConditionFalse, workv1alpha1.WorkDriftRevertedReason
		clusterReports = saying(works, workv1alpha1.WorkDrifted, metav1.ConditionFalse)
	}
	c.Message = messageOf(clusterReports)
	return c, len(clusterReports) > 0
}

// report is a message of one cluster.
type report struct{ cluster, text string }

// saying returns the messages of the Works whose condition has the given status, sorted by cluster.
func saying(works []*workv1alpha1.Work, kind string, status metav1.ConditionStatus) []report {
	var out []report
	for _, w := range works {
		cluster, ok := speaks(w)
		if !ok {
			continue
		}
		if c := meta.FindStatusCondition(w.Status.Conditions, kind); c != nil && c.Status == status {
			out = append(out, report{cluster, c.Message})
		}
	}
	slices.SortFunc(out, func(a, b report) int { return cmp.Compare(a.cluster, b.cluster) })
	return out
}

// messageOf joins messages, which are sorted by cluster, to one text of bounded
// length. Clusters with the same message are listed together.
func messageOf(clusterReports []report) string {
	var texts []string
	clusters := map[string][]string{}
	for _, s := range clusterReports {
		if clusters[s.text] == nil {
			texts = append(texts, s.text)
		}
		clusters[s.text] = append(clusters[s.text], s.cluster)
	}
	out := make([]string, 0, mostTexts)
	for i, text := range texts {
		if i == mostTexts {
			rest := 0
			for _, t := range texts[i:] {
				rest += len(clusters[t])
			}
			return strings.Join(out, "; ") + fmt.Sprintf("; and %d more clusters", rest)
		}
		out = append(out, names(clusters[text])+": "+excerpt.Message(text, mostFault))
	}
	return strings.Join(out, "; ")
}

// names lists clusters, as in "a, b and 3 more".
func names(clusters []string) string { return excerpt.Names(clusters, mostNames) }
