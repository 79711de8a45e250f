package commitstatus

import (
	"context"
	"testing"
	"time"

	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	notificationv1 "github.com/fluxcd/notification-controller/api/v1"
	notificationv1beta3 "github.com/fluxcd/notification-controller/api/v1beta3"
	"github.com/fluxcd/pkg/apis/meta"
	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	"github.com/google/go-cmp/cmp"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	gitopsv1alpha1 "github.com/flotilla-io/flotilla/api/gitops/v1alpha1"
	"github.com/flotilla-io/flotilla/api/scheme"
	"github.com/flotilla-io/flotilla/policies/excerpt"
	"github.com/flotilla-io/flotilla/policies/rollup"
	"github.com/flotilla-io/flotilla/reconciler/inventory"
)

const (
	revisionA = "main@sha1:aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
	revisionB = "main@sha1:bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb"
	revisionC = "main@sha1:cccccccccccccccccccccccccccccccccccccccc"
)

// fleet is what the members run: one object in one cluster, and what they hold of what has left.
type fleet struct {
	cluster rollup.ClusterPart
	left    []rollup.Part
}

// Parts implements Gatherer.
func (f *fleet) Parts(context.Context, client.ObjectKey, []inventory.Entry) ([]rollup.Part, error) {
	return []rollup.Part{{Object: "Deployment shop/web", Clusters: []rollup.ClusterPart{f.cluster}}}, nil
}

// RemainingParts implements Gatherer.
func (f *fleet) RemainingParts(context.Context, client.ObjectKey, []inventory.ID) ([]rollup.Part, error) {
	return f.left, nil
}

func (f *fleet) is(state rollup.State, reason string) {
	f.cluster = rollup.ClusterPart{Name: "east", State: state, Reason: reason}
}

// handover is a Kustomization of a source, at some point of the way from one revision
// to the next.
type handover struct {
	t        *testing.T
	hub      client.Client
	clock    *clocktesting.FakeClock
	fleet    fleet
	loop     *Reconciler
	reported []string // each that differs from the one before
}

type silent struct{}

func (silent) Event(runtime.Object, string, string, string) {}

func newHandover(t *testing.T) *handover {
	t.Helper()
	h := &handover{t: t, clock: clocktesting.NewFakeClock(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC))}
	h.hub = fake.NewClientBuilder().WithScheme(scheme.New()).WithStatusSubresource(&kustomizev1.Kustomization{}, &sourcev1.GitRepository{}).WithObjects(
		&sourcev1.GitRepository{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "fleet"}, Spec: sourcev1.GitRepositorySpec{URL: "https://git.example.com/acme/fleet"}},
		&kustomizev1.Kustomization{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web"}, Spec: kustomizev1.KustomizationSpec{
			SourceRef: kustomizev1.CrossNamespaceSourceReference{Kind: sourcev1.GitRepositoryKind, Name: "fleet"},
		}},
		&notificationv1beta3.Provider{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "forge"}, Spec: notificationv1beta3.ProviderSpec{Type: notificationv1beta3.GiteaProvider}},
		&notificationv1beta3.Alert{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "forge"}, Spec: notificationv1beta3.AlertSpec{
			ProviderRef:  meta.LocalObjectReference{Name: "forge"},
			EventSources: []notificationv1.CrossNamespaceObjectReference{{Kind: kustomizev1.KustomizationKind, Name: "*"}},
		}},
	).Build()
	h.loop = New(h.hub, &h.fleet, silent{}, Options{Clock: h.clock})
	return h
}

// fetched is that the source has a revision.
func (h *handover) fetched(revision string) {
	h.t.Helper()
	repository := &sourcev1.GitRepository{}
	if err := h.hub.Get(h.t.Context(), client.ObjectKey{Namespace: "shop", Name: "fleet"}, repository); err != nil {
		h.t.Fatal(err)
	}
	repository.Status.Artifact = &meta.Artifact{Revision: revision}
	if err := h.hub.Status().Update(h.t.Context(), repository); err != nil {
		h.t.Fatal(err)
	}
}

func (h *handover) kustomization(change func(*kustomizev1.Kustomization)) {
	h.t.Helper()
	h.change(client.ObjectKey{Namespace: "shop", Name: "web"}, change)
}

func (h *handover) change(key client.ObjectKey, change func(*kustomizev1.Kustomization)) {
	h.t.Helper()
	ks := &kustomizev1.Kustomization{}
	if err := h.hub.Get(h.t.Context(), key, ks); err != nil {
		h.t.Fatal(err)
	}
	change(ks)
	status := ks.Status.DeepCopy()
	if err := h.hub.Update(h.t.Context(), ks); err != nil {
		h.t.Fatal(err)
	}
	ks.Status = *status
	if err := h.hub.Status().Update(h.t.Context(), ks); err != nil {
		h.t.Fatal(err)
	}
}

// noted is that the Kustomization says of a revision what its apply came to.
func (h *handover) noted(revision string, ready metav1.ConditionStatus, reason, message string) {
	h.t.Helper()
	h.kustomization(func(ks *kustomizev1.Kustomization) {
		ks.Status.LastAttemptedRevision = revision
		if ready == metav1.ConditionTrue {
			ks.Status.LastAppliedRevision = revision
		}
		apimeta.SetStatusCondition(&ks.Status.Conditions, metav1.Condition{Type: meta.ReadyCondition, Status: ready, Reason: reason, Message: message})
	})
}

func (h *handover) applied(revision string) {
	h.t.Helper()
	h.noted(revision, metav1.ConditionTrue, meta.ReconciliationSucceededReason, "Applied revision: "+revision)
}

// unchanged is that a revision is applied that changes nothing of what an earlier one did.
func (h *handover) unchanged(since, revision string) {
	h.t.Helper()
	h.fetched(revision)
	h.applied(revision)
	h.kustomization(func(ks *kustomizev1.Kustomization) { recordUnchanged(ks, since, revision) })
}

func recordUnchanged(ks *kustomizev1.Kustomization, since, revision string) {
	ks.Status.History = meta.History{{Metadata: map[string]string{"revision": revision, gitopsv1alpha1.ChangedKey: since}}}
}

// made is that a Kustomization of a source has applied a revision which changes the one that is told of.
func (h *handover) made(source, revision string) {
	h.t.Helper()
	h.kustomization(func(ks *kustomizev1.Kustomization) { ks.Labels = inventory.OwnerLabels(parentKey) })
	h.parent(func(ks *kustomizev1.Kustomization) {
		ks.Spec.SourceRef = kustomizev1.CrossNamespaceSourceReference{Kind: sourcev1.GitRepositoryKind, Name: source}
		ks.Status.LastAttemptedRevision, ks.Status.LastAppliedRevision = revision, revision
		recordUnchanged(ks, revision, revision)
	})
}

// unchangedParent is that it has applied a revision since which changes nothing of that.
func (h *handover) unchangedParent(since, revision string) {
	h.t.Helper()
	h.parent(func(ks *kustomizev1.Kustomization) {
		ks.Status.LastAttemptedRevision, ks.Status.LastAppliedRevision = revision, revision
		recordUnchanged(ks, since, revision)
	})
}

var parentKey = client.ObjectKey{Namespace: "shop", Name: "parent"}

func (h *handover) parent(change func(*kustomizev1.Kustomization)) {
	h.t.Helper()
	ks := &kustomizev1.Kustomization{ObjectMeta: metav1.ObjectMeta{Namespace: parentKey.Namespace, Name: parentKey.Name}}
	if err := client.IgnoreAlreadyExists(h.hub.Create(h.t.Context(), ks)); err != nil {
		h.t.Fatal(err)
	}
	h.change(parentKey, change)
}

// addressed is that the Provider has an address, whatever the source is.
func (h *handover) addressed() {
	h.t.Helper()
	forge := &notificationv1beta3.Provider{}
	if err := h.hub.Get(h.t.Context(), client.ObjectKey{Namespace: "shop", Name: "forge"}, forge); err != nil {
		h.t.Fatal(err)
	}
	forge.Spec.Address = "https://git.example.com/acme/fleet"
	if err := h.hub.Update(h.t.Context(), forge); err != nil {
		h.t.Fatal(err)
	}
}

// looks has the loop look until it has nothing more to wait for, and keeps what it tells.
func (h *handover) reconcile() {
	h.t.Helper()
	for range 3 {
		result, err := h.loop.Reconcile(h.t.Context(), reconcile.Request{NamespacedName: client.ObjectKey{Namespace: "shop", Name: "web"}})
		if err != nil {
			h.t.Fatal(err)
		}
		var list gitopsv1alpha1.CommitStatusList
		if err := h.hub.List(h.t.Context(), &list); err != nil {
			h.t.Fatal(err)
		}
		for _, cs := range list.Items {
			text := cs.Spec.Commit[:1] + " " + string(cs.Spec.State) + ": " + cs.Spec.Description
			if len(h.reported) == 0 || h.reported[len(h.reported)-1] != text {
				h.reported = append(h.reported, text)
			}
		}
		h.clock.Step(result.RequeueAfter)
	}
}

// green takes a revision as far as its success.
func (h *handover) green(revision string) {
	h.t.Helper()
	h.fetched(revision)
	h.applied(revision)
	h.fleet.is(rollup.Healthy, "")
	h.reconcile()
}

// TestHandovers: of a revision is told what was seen of it, and never what the objects
// of the one that follows look like.
func TestHandovers(t *testing.T) {
	const (
		greenA   = "a success: 1/1 clusters ready"
		notSentB = "b pending: 0/1 clusters ready: east waits for Deployment shop/web: latest version not sent yet"
		greenB   = "b success: 1/1 clusters ready"
	)
	cases := map[string]struct {
		steps func(*handover)
		want  []string
	}{
		"the next one is applied, and noted later": {
			steps: func(h *handover) {
				h.green(revisionA)
				h.fetched(revisionB)
				h.fleet.is(rollup.Progressing, "latest version not sent yet")
				h.reconcile()
				h.applied(revisionB)
				h.reconcile()
				h.fleet.is(rollup.Healthy, "")
				h.reconcile()
			},
			want: []string{greenA, notSentB, greenB},
		},
		"the next one fails in the members before it is noted": {
			steps: func(h *handover) {
				h.green(revisionA)
				h.fetched(revisionB)
				h.fleet.is(rollup.Failed, "no such image")
				h.reconcile()
				h.applied(revisionB)
				h.reconcile()
			},
			want: []string{greenA, "b failure: 0/1 clusters ready: east failed on Deployment shop/web: no such image"},
		},
		"the next one cannot be applied": {
			steps: func(h *handover) {
				h.green(revisionA)
				h.fetched(revisionB)
				h.reconcile()
				h.noted(revisionB, metav1.ConditionFalse, meta.BuildFailedReason, "app/x.yaml: broken")
				h.reconcile()
			},
			want: []string{greenA, "b error: BuildFailed: app/x.yaml: broken"},
		},
		"one that waits does not become green by what the next one runs": {
			steps: func(h *handover) {
				h.fetched(revisionA)
				h.applied(revisionA)
				h.fleet.is(rollup.Progressing, "not ready 1/2")
				h.reconcile()
				h.fetched(revisionB)
				h.fleet.is(rollup.Healthy, "")
				h.reconcile()
				h.applied(revisionB)
				h.reconcile()
			},
			want: []string{"a pending: 0/1 clusters ready: east waits for Deployment shop/web 1/2", greenB},
		},
		"one of which nothing was told yet": {
			steps: func(h *handover) {
				h.green(revisionA)
				h.fetched(revisionB)
				h.applied(revisionB)
				h.fetched(revisionC)
				h.reconcile()
				h.applied(revisionC)
				h.reconcile()
			},
			want: []string{greenA, "b pending: " + excerpt.Revisions(revisionC) + " takes its place", "c success: 1/1 clusters ready"},
		},
		"the next one is taken back before it is noted": {
			steps: func(h *handover) {
				h.green(revisionA)
				h.fetched(revisionB)
				h.reconcile()
				h.fetched(revisionA)
				h.reconcile()
			},
			want: []string{greenA},
		},
		"the latest one breaks later": {
			steps: func(h *handover) {
				h.green(revisionA)
				h.fleet.is(rollup.Failed, "no such image")
				h.reconcile()
				h.fleet.is(rollup.Healthy, "")
				h.reconcile()
			},
			want: []string{greenA, "a failure: 0/1 clusters ready: east failed on Deployment shop/web: no such image", greenA},
		},
		"its source is another one, which it may not read": {
			steps: func(h *handover) {
				h.addressed()
				h.green(revisionA)
				h.kustomization(func(ks *kustomizev1.Kustomization) { ks.Spec.SourceRef.Namespace = "theirs" })
				h.noted(revisionA, metav1.ConditionFalse, "AccessDenied", "the source GitRepository theirs/fleet is in another namespace")
				h.reconcile()
			},
			want: []string{greenA},
		},
		"the next one, which changes none of its files, has it wait for itself, and the one after that does not": {
			steps: func(h *handover) {
				h.green(revisionA)
				h.made("fleet", revisionA)
				h.unchanged(revisionA, revisionB) // with the spec of before
				h.reconcile()
				h.made("fleet", revisionB)
				h.noted(revisionB, metav1.ConditionFalse, "DependencyCycle", "web depends on db, and that on web")
				h.reconcile()
				h.made("fleet", revisionC)
				h.unchanged(revisionA, revisionC)
				h.reconcile()
			},
			want: []string{greenA, "b error: DependencyCycle: web depends on db, and that on web", "c success: 1/1 clusters ready"},
		},
		"the next one names a folder that only another one has": {
			steps: func(h *handover) {
				h.green(revisionA)
				h.made("fleet", revisionB)
				h.unchanged(revisionA, revisionB)
				h.noted(revisionB, metav1.ConditionFalse, inventory.ReasonPathNotFound, "there is no ./new")
				h.reconcile()
			},
			want: []string{greenA, "b error: PathNotFound: there is no ./new"},
		},
		"somebody edits it so that it waits for itself, at a commit that changed nothing": {
			steps: func(h *handover) {
				h.green(revisionA)
				h.made("fleet", revisionA)
				h.unchanged(revisionA, revisionB)
				h.unchangedParent(revisionA, revisionB)
				h.noted(revisionB, metav1.ConditionFalse, "DependencyCycle", "web depends on db, and that on web")
				h.reconcile()
				h.unchanged(revisionA, revisionB)
				h.reconcile()
			},
			want: []string{greenA, "b pending: DependencyCycle: web depends on db, and that on web", greenB},
		},
		"who made it is of another source": {
			steps: func(h *handover) {
				h.green(revisionA)
				h.made("other", revisionA)
				h.noted(revisionA, metav1.ConditionFalse, "NotSupported", "spec.kubeConfig.configMapRef is not supported yet")
				h.reconcile()
				h.applied(revisionA)
				h.reconcile()
			},
			want: []string{greenA, "a pending: NotSupported: spec.kubeConfig.configMapRef is not supported yet", greenA},
		},
		"its source is another one, of a kind that is not supported": {
			steps: func(h *handover) {
				h.addressed()
				h.green(revisionA)
				h.kustomization(func(ks *kustomizev1.Kustomization) { ks.Spec.SourceRef.Kind = "HelmChart" })
				h.noted(revisionA, metav1.ConditionFalse, "NotSupported", "spec.sourceRef.kind HelmChart is not supported yet")
				h.reconcile()
			},
			want: []string{greenA},
		},
		"one that breaks, and stays the one that runs as the Kustomization is suspended": {
			steps: func(h *handover) {
				h.green(revisionA)
				h.kustomization(func(ks *kustomizev1.Kustomization) { ks.Spec.Suspend = true })
				h.fetched(revisionB)
				h.fleet.is(rollup.Failed, "no such image")
				h.reconcile()
			},
			want: []string{greenA, "a failure: 0/1 clusters ready: east failed on Deployment shop/web: no such image"},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			h := newHandover(t)
			tc.steps(h)
			if diff := cmp.Diff(tc.want, h.reported); diff != "" {
				t.Errorf("told (-want +got):\n%s", diff)
			}
		})
	}
}
