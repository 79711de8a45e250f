package staleremoval_test

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	workv1alpha1 "github.com/flotilla-io/flotilla/api/work/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/policies/staleremoval"
)

func TestRecall(t *testing.T) {
	of := func(deleted bool, value string, applied metav1.ConditionStatus) *workv1alpha1.Work {
		w := &workv1alpha1.Work{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{workv1alpha2.WantedAgainAnnotation: value}}}
		if deleted {
			w.DeletionTimestamp = &metav1.Time{}
		}
		w.Status.Conditions = []metav1.Condition{{Type: workv1alpha1.WorkApplied, Status: applied}}
		return w
	}
	for name, tc := range map[string]struct {
		work *workv1alpha1.Work
		want string
	}{
		"no Work":                        {},
		"what is wanted again":           {of(true, "true", metav1.ConditionTrue), staleremoval.Stays},
		"what was never there":           {of(true, "true", metav1.ConditionFalse), ""},
		"what may be wanted again":       {of(true, "undecided", metav1.ConditionTrue), ""},
		"what goes":                      {of(true, "", metav1.ConditionTrue), ""},
		"what nobody has asked to leave": {of(false, "true", metav1.ConditionTrue), ""},
	} {
		if got := staleremoval.Recall(tc.work); got != tc.want {
			t.Errorf("%s: %q, want %q", name, got, tc.want)
		}
	}
}
