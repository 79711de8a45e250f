package situation_test

import (
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/cmd/flotilla/overview/situation"
	"github.com/flotilla-io/flotilla/policies/propagation"
)

// TestWhatTheDeschedulerMoved is shown for an hour: from where, to where, why and when.
func TestWhatTheDeschedulerMoved(t *testing.T) {
	deployment := func(name string, ago time.Duration) *workv1alpha2.ResourceBinding {
		b := &workv1alpha2.ResourceBinding{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name + "-deployment"}}
		b.Spec.Resource = workv1alpha2.ObjectReference{APIVersion: "apps/v1", Kind: "Deployment", Namespace: "shop", Name: name}
		b.Spec.Clusters = []workv1alpha2.TargetCluster{{Name: "east", Replicas: 1}, {Name: "west", Replicas: 3}}
		at := now.Add(-ago).UTC().Format(time.RFC3339)
		b.Annotations = map[string]string{workv1alpha2.SchedulingDecisionAnnotation: `{"reason":"Success","at":"` + at + `","lastMove":{"from":["east"],"to":["west"],"why":"found no node there","at":"` + at + `","ended":"` + at + `","replicas":2}}`}
		propagation.ClaimOf(carrying(name, 1)).Set(b)
		return b
	}
	const first = "Deployment shop/api: the descheduler moved 2 replicas from east to west at 2026-03-05 09:18:00 UTC, 12m ago: found no node there"
	for name, tc := range map[string]struct {
		bindings []*workv1alpha2.ResourceBinding
		want     string
	}{
		"one":      {[]*workv1alpha2.ResourceBinding{deployment("api", 12*time.Minute), deployment("web", 2*time.Hour)}, first + "\n      next: flotilla explain deployment/api -n shop\n"},
		"two":      {[]*workv1alpha2.ResourceBinding{deployment("web", 12*time.Minute), deployment("api", 12*time.Minute)}, first + "; so it did with 1 more: Deployment shop/web\n"},
		"long ago": {[]*workv1alpha2.ResourceBinding{deployment("api", 2*time.Hour)}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			s := situation.NewSurvey(now, "")
			s.Cluster(member("east"), time.Time{})
			s.Cluster(member("west"), time.Time{})
			for _, b := range tc.bindings {
				s.Binding(b, nil)
			}
			got := string(text(t, s.Fleet(), true))
			if strings.Contains(got, "descheduler") != (tc.want != "") || !strings.Contains(got, tc.want) {
				t.Errorf("%q is not in\n%s", tc.want, got)
			}
		})
	}
}
