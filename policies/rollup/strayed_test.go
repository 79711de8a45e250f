package rollup_test

import (
	"maps"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	workv1alpha1 "github.com/flotilla-io/flotilla/api/work/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/policies/rollup"
)

// TestWhatWasRemovedAndIsLeftSo checks that an object that somebody removed in
// the cluster, where drift is only reported, has that as the reason for its
// unknown health, once. A binding has it for each cluster, however many there
// are.
func TestWhatWasRemovedAndIsLeftSo(t *testing.T) {
	const removed = "Deployment shop/web was removed"
	reported := rollup.Strayed + removed
	others := map[string]string{"b": removed, "c": removed, "d": "m: it is not", "e": "spec.replicas is 7", "f": "; m: nothing", "g": removed, "h": removed, "i": removed}
	for name, tc := range map[string]struct {
		kind    string            // Deployment if empty
		drifted map[string]string // messages of Works about drift that is left so, by cluster
		mended  bool              // the drift was reverted
		health  workv1alpha2.ResourceHealth
		want    string
	}{
		"nothing is said of it":             {want: rollup.HealthAwaited},
		"it is said so":                     {drifted: map[string]string{"m": removed}, want: reported},
		"without words":                     {drifted: map[string]string{"m": ""}, want: rollup.Strayed + workv1alpha1.WorkDriftReportedReason},
		"of several clusters":               {drifted: map[string]string{"m": removed, "b": "spec.replicas is 7", "c": removed}, want: reported},
		"of other clusters":                 {drifted: others, want: rollup.HealthAwaited},
		"of more than are named":            {drifted: with(others, "m", removed), want: reported},
		"of words that look like more":      {drifted: map[string]string{"m": removed + "; b: not"}, want: reported + "; b: not"},
		"it was put back":                   {drifted: map[string]string{"m": removed}, mended: true, want: rollup.HealthAwaited},
		"a Job is not said to run":          {kind: "Job", drifted: map[string]string{"m": removed}, want: reported},
		"what is there is as it is, anyway": {drifted: map[string]string{"m": "spec.replicas is 7"}, health: workv1alpha2.ResourceUnhealthy, want: "not ready"},
	} {
		t.Run(name, func(t *testing.T) {
			works := []*workv1alpha1.Work{work("m", "True", "", tc.health, "")}
			for cluster, says := range tc.drifted {
				c := metav1.Condition{Type: workv1alpha1.WorkDrifted, Status: metav1.ConditionTrue, Reason: workv1alpha1.WorkDriftReportedReason, Message: says}
				if tc.mended {
					c.Status, c.Reason = metav1.ConditionFalse, workv1alpha1.WorkDriftRevertedReason
				}
				w := works[0]
				if cluster != "m" {
					w = work(cluster, "True", "", "", "")
					works = append(works, w)
				}
				w.Status.Conditions = append(w.Status.Conditions, c)
			}
			b := binding(succeeded, "m")
			b.Status = rollup.Status(b, rollup.Report{Works: works, Now: at.Time})
			of := template("Deployment")
			if tc.kind != "" {
				of = template(tc.kind)
				of.SetAPIVersion("batch/v1")
			}
			for by, works := range map[string][]*workv1alpha1.Work{"by its Works": works, "by its binding": nil} {
				part := rollup.PartOf(of, b, works, nil).Clusters[0]
				note := ""
				if tc.health == workv1alpha2.ResourceUnhealthy && works != nil {
					note = tc.drifted["m"] // the note is not what it waits for
				}
				if diff := cmp.Diff([]string{"Progressing", tc.want, note}, []string{part.State.String(), part.Reason, part.Note}); diff != "" {
					t.Errorf("%s: state, reason, note (-want +got):\n%s", by, diff)
				}
			}
		})
	}
}

// with returns a copy of messages with another one.
func with(messages map[string]string, cluster, text string) map[string]string {
	out := maps.Clone(messages)
	out[cluster] = text
	return out
}
