package situation_test

import (
	"cmp"
	"testing"
	"time"

	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	"github.com/fluxcd/pkg/apis/meta"
	gocmp "github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/flotilla-io/flotilla/cmd/flotilla/overview/situation"
	"github.com/flotilla-io/flotilla/reconciler/inventory"
)

// TestWhatHangs: an object that a finalizer keeps after it left its Kustomization is a problem, also if the Kustomization is
// ready; one that is about to be gone is not, and a namespace is not reported twice.
func TestWhatHangs(t *testing.T) {
	const blocked = "kept by its finalizers: example.com/hold"
	hangs := func(kind, name, keeps string) inventory.Terminating {
		return inventory.Terminating{ID: inventory.ID{Namespace: "shop", Name: name, GroupKind: schema.GroupKind{Kind: kind}}, UID: "1", Keeps: keeps}
	}
	hidden := hangs("Secret", "key", blocked)
	hidden.Nameless = true
	const own = "kept by its finalizers: karmada.io/propagation-policy-controller"
	for name, tc := range map[string]struct {
		found []inventory.Terminating
		ago   time.Duration // that the revision was first applied
		want  string
		next  string // another one than for what others keep
	}{
		"nothing":                           {},
		"it is about to go":                 {found: []inventory.Terminating{hangs("ConfigMap", "a", "")}},
		"a namespace, which tells itself":   {found: []inventory.Terminating{{ID: inventory.ID{Name: "inner", GroupKind: schema.GroupKind{Kind: "Namespace"}}, Keeps: blocked}}},
		"a finalizer keeps it":              {found: []inventory.Terminating{hangs("ConfigMap", "a", blocked)}, want: "1 object that left it is still being deleted on the control plane: ConfigMap/shop/a, " + blocked},
		"its own work on it has just begun": {found: []inventory.Terminating{hangs("PropagationPolicy", "all", own)}, ago: 4 * time.Second},
		"its own work on it takes long": {found: []inventory.Terminating{hangs("PropagationPolicy", "all", own)}, ago: time.Minute, want: "1 object that left it is still being deleted on the control plane: PropagationPolicy/shop/all",
			next: "nothing: it goes by itself once the control plane has ended its work there"},
		"that, and what others keep": {found: []inventory.Terminating{hangs("PropagationPolicy", "all", own), hangs("PropagationPolicy", "web", own+", example.com/hold")}, ago: time.Minute,
			want: "2 objects that left it are still being deleted on the control plane: PropagationPolicy/shop/web, " + blocked},
		"of several":                      {found: []inventory.Terminating{hangs("ConfigMap", "a", blocked), hangs("ConfigMap", "b", ""), hangs("ConfigMap", "c", "other")}, want: "2 objects that left it are still being deleted on the control plane: ConfigMap/shop/a, " + blocked},
		"text of a Secret is in its name": {found: []inventory.Terminating{hidden}, want: "1 object that left it is still being deleted on the control plane: Secret, " + blocked},
	} {
		t.Run(name, func(t *testing.T) {
			ks := &kustomizev1.Kustomization{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web"}}
			ks.Status.Conditions = []metav1.Condition{{Type: meta.ReadyCondition, Status: metav1.ConditionTrue, Reason: meta.ReconciliationSucceededReason}}
			ks.Status.History = meta.History{{FirstReconciled: metav1.NewTime(now.Add(-tc.ago))}}
			inventory.RecordTerminating(&ks.Status, tc.found, true)
			s := situation.NewSurvey(now, "")
			s.Kustomization(ks)
			want := []situation.Problem{}
			if tc.want != "" {
				want = append(want, situation.Problem{State: situation.Progressing, Kind: "Kustomization", Namespace: "shop", Name: "web", Message: tc.want,
					Next: cmp.Or(tc.next, "have whoever set what keeps it end its work there, or take it off: then it goes by itself")})
			}
			if diff := gocmp.Diff(want, s.Fleet().Problems); diff != "" {
				t.Errorf("problems (-want +got):\n%s", diff)
			}
		})
	}
}
