package situation

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	workv1alpha1 "github.com/flotilla-io/flotilla/api/work/v1alpha1"
)

func TestDeletionsThatWaitAreShown(t *testing.T) {
	waits := &workv1alpha1.Work{ObjectMeta: metav1.ObjectMeta{Namespace: "karmada-es-east", Name: "shop-7b9d"}}
	waits.Status.Conditions = []metav1.Condition{{Type: workv1alpha1.WorkDeletionBlocked, Status: metav1.ConditionTrue, Message: "Namespace shop holds ConfigMap legacy"}}
	s := NewSurvey(time.Unix(0, 0), "")
	s.Work(waits)
	s.Work(&workv1alpha1.Work{ObjectMeta: metav1.ObjectMeta{Namespace: "karmada-es-east", Name: "goes"}})
	want := []Problem{{
		State: Failed, Kind: "Work", Namespace: "karmada-es-east", Name: "shop-7b9d", Clusters: []string{"east"}, Message: "Namespace shop holds ConfigMap legacy",
		Next: "see that nobody misses it, then: flotilla kubectl annotate work -n karmada-es-east shop-7b9d propagation.flotilla.io/allow-cascade=true",
	}}
	if diff := cmp.Diff(want, s.Fleet().Problems); diff != "" {
		t.Errorf("problems (-want +got):\n%s", diff)
	}
}
