package transientrefusals_test

import (
	"errors"
	"testing"
	"time"

	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	"github.com/fluxcd/pkg/apis/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/flotilla-io/flotilla/api/scheme"
	"github.com/flotilla-io/flotilla/internal/loop"
	"github.com/flotilla-io/flotilla/reconciler/apply/siblings"
	"github.com/flotilla-io/flotilla/reconciler/apply/transientrefusals"
	"github.com/flotilla-io/flotilla/reconciler/inventory"
)

const (
	before   = "main@sha1:1111111"
	revision = "main@sha1:2222222"
)

func kustomization(name string) *kustomizev1.Kustomization {
	ks := &kustomizev1.Kustomization{ObjectMeta: metav1.ObjectMeta{Namespace: "flux-system", Name: name}}
	ks.Spec.SourceRef = kustomizev1.CrossNamespaceSourceReference{Kind: "GitRepository", Name: "fleet"}
	return ks
}

// parent returns a Kustomization that applied the child "stage", with the given revisions and condition Ready.
func parent(applied, tried string, ready metav1.ConditionStatus, reason, message string) *kustomizev1.Kustomization {
	ks := kustomization("fleet")
	ks.Status.LastAppliedRevision, ks.Status.LastAttemptedRevision = applied, tried
	ks.Status.Conditions = []metav1.Condition{{Type: meta.ReadyCondition, Status: ready, Reason: reason, Message: message}}
	ks.Status.Inventory = &kustomizev1.ResourceInventory{Entries: []kustomizev1.ResourceRef{{ID: "flux-system_stage_kustomize.toolkit.fluxcd.io_Kustomization", Version: "v1"}}}
	return ks
}

// TestWhoMayUndoARefusal: a refusal that the parent may undo, as it has yet to apply the revision, is reported only
// once it has.
func TestWhoMayUndoARefusal(t *testing.T) {
	const awaited = "waiting for Kustomization flux-system/fleet, which has yet to apply revision " + revision + "; until then: path ./stage is not there"
	refused := loop.Stalled("PathNotFound", errors.New("path ./stage is not there"))
	old := func() *kustomizev1.Kustomization {
		return parent(before, before, metav1.ConditionTrue, meta.ReconciliationSucceededReason, "")
	}
	with := func(ks *kustomizev1.Kustomization, edit func(*kustomizev1.Kustomization)) *kustomizev1.Kustomization {
		edit(ks)
		return ks
	}
	for name, tc := range map[string]struct {
		parent *kustomizev1.Kustomization
		err    error
		later  time.Duration
		waits  bool
	}{
		"the parent is at the commit before":             {parent: old(), waits: true},
		"it is being applied":                            {parent: parent(before, revision, metav1.ConditionUnknown, meta.ProgressingReason, "Applying"), waits: true},
		"it waits for a dependency":                      {parent: parent(before, revision, metav1.ConditionFalse, meta.DependencyNotReadyReason, ""), waits: true},
		"it is waited for, for almost a minute":          {parent: old(), later: 59 * time.Second, waits: true},
		"it is waited for, for a minute":                 {parent: old(), later: time.Minute},
		"it has applied the commit":                      {parent: parent(revision, revision, metav1.ConditionTrue, meta.ReconciliationSucceededReason, "")},
		"it is refused itself":                           {parent: parent(before, revision, metav1.ConditionFalse, "PruneBlocked", "")},
		"it hands over to this one":                      {parent: parent(before, revision, metav1.ConditionUnknown, siblings.ReasonHandingOver, "")},
		"it is suspended":                                {parent: with(old(), func(ks *kustomizev1.Kustomization) { ks.Spec.Suspend = true })},
		"it follows another source":                      {parent: with(old(), func(ks *kustomizev1.Kustomization) { ks.Spec.SourceRef.Name = "other" })},
		"it did not apply this one, whatever labels say": {parent: with(old(), func(ks *kustomizev1.Kustomization) { ks.Status.Inventory = nil })},
		"it is applied, and waits for health": {parent: with(parent(before, revision, metav1.ConditionUnknown, meta.ProgressingReason, "Running"), func(ks *kustomizev1.Kustomization) {
			ks.Status.Conditions = append(ks.Status.Conditions, metav1.Condition{Type: meta.HealthyCondition, Status: metav1.ConditionUnknown, Reason: meta.ProgressingReason, Message: "Running"})
		})},
		"it is about to delete this one": {parent: with(parent(revision, revision, metav1.ConditionTrue, meta.ReconciliationSucceededReason, ""), func(ks *kustomizev1.Kustomization) {
			ks.Status.History = meta.History{{Digest: "x", Metadata: map[string]string{}}}
			inventory.RecordLeaving(&ks.Status, []inventory.ID{{Namespace: "flux-system", Name: "stage", GroupKind: kustomizev1.GroupVersion.WithKind("Kustomization").GroupKind()}}, nil, true)
		}), waits: true},
		"a fault of the server":          {parent: old(), err: errors.New("connection refused")},
		"what is applied is not healthy": {parent: old(), err: loop.Waiting(meta.HealthCheckFailedReason, time.Second, errors.New("unhealthy"))},
	} {
		t.Run(name, func(t *testing.T) {
			stage := kustomization("stage")
			stage.Labels = inventory.OwnerLabels(client.ObjectKeyFromObject(tc.parent))
			refusals := transientrefusals.New(fake.NewClientBuilder().WithScheme(scheme.New()).WithObjects(tc.parent).Build())
			of := transientrefusals.Refusal{Of: stage, Revision: revision, Err: tc.err, Now: time.Unix(1e9, 0)}
			if of.Err == nil {
				of.Err = refused
			}
			refusals.Judge(t.Context(), of)
			of.Now = of.Now.Add(tc.later)
			judged, waits := refusals.Judge(t.Context(), of)
			want := of.Err.Error()
			if tc.waits {
				want = awaited
			}
			if waits != tc.waits || judged.Error() != want {
				t.Errorf("waits = %v for %q; want %v, %q", waits, judged, tc.waits, want)
			}
		})
	}
}

// TestANamespaceThatIsAboutToGo: objects in a namespace whose deletion the commit allows are not reported as refused by
// the brake.
func TestANamespaceThatIsAboutToGo(t *testing.T) {
	config := func(namespace string) inventory.Loss {
		id := inventory.ID{Namespace: namespace, Name: "web"}
		id.GroupKind.Kind = "ConfigMap"
		return inventory.Loss{ID: id}
	}
	precious := config("shop")
	precious.Precious = true
	for name, tc := range map[string]struct {
		trailer string
		losses  []inventory.Loss
		want    string // what it waits for; empty for nothing
	}{
		"it is named":                  {"namespace/shop", []inventory.Loss{config("shop")}, "waiting for Namespace/shop to go, which this revision allows"},
		"another one is named":         {"namespace/shops", []inventory.Loss{config("shop")}, ""},
		"something else is refused":    {"namespace/shop", []inventory.Loss{config("shop"), config("kitchen")}, ""},
		"what is precious has a name":  {"namespace/shop", []inventory.Loss{precious}, ""},
		"what is in no namespace goes": {"namespace/shop", []inventory.Loss{config("")}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			may := inventory.AllowanceOf("", tc.trailer, revision)
			refused := loop.Stalled(inventory.ReasonPruneBlocked, inventory.DefaultBrake().Check(len(tc.losses), tc.losses, may, revision))
			of := transientrefusals.Refusal{Of: kustomization("stage"), Revision: revision, Allowed: may, Err: refused, Now: time.Unix(1e9, 0)}
			judged, waits := transientrefusals.New(fake.NewClientBuilder().WithScheme(scheme.New()).Build()).Judge(t.Context(), of)
			want := refused.Error()
			if tc.want != "" {
				want = tc.want + "; until then: " + want
			}
			if waits != (tc.want != "") || judged.Error() != want {
				t.Errorf("waits = %v for %q; want %q", waits, judged, want)
			}
		})
	}
}
