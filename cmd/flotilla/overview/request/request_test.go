package request

import (
	"context"
	"strings"
	"testing"
	"time"

	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	notificationv1 "github.com/fluxcd/notification-controller/api/v1"
	"github.com/fluxcd/pkg/apis/meta"
	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/watch"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/flotilla-io/flotilla/api/scheme"
	"github.com/flotilla-io/flotilla/reconciler/inventory"
)

const (
	older  = "main@sha1:1"
	latest = "main@sha1:2"
)

// A wait ends with what a person has to mend, and not while a dependency is waited for, which goes on by itself.
func TestWhatEndsAWait(t *testing.T) {
	type outcome struct {
		Ended     bool
		Err, Says string
	}
	for name, tc := range map[string]struct {
		status  metav1.ConditionStatus
		reason  string
		message string
		request string // what was handled last is "now"
		want    outcome
	}{
		"it is ready":                   {metav1.ConditionTrue, "ReconciliationSucceeded", "Applied", "", outcome{Ended: true, Says: "✔ applied revision main@sha1:1\n"}},
		"it is under way":               {metav1.ConditionUnknown, "Progressing", "Applying", "", outcome{Says: "◎ Applying\n"}},
		"it is refused":                 {metav1.ConditionFalse, "BuildFailed", "a typo", "", outcome{Ended: true, Err: "Kustomization team/web is not ready: BuildFailed: a typo"}},
		"the brake holds it":            {metav1.ConditionFalse, "PruneBlocked", "too much", "now", outcome{Ended: true, Err: "Kustomization team/web is not ready: PruneBlocked: too much"}},
		"it is ready, and was asked":    {metav1.ConditionTrue, "ReconciliationSucceeded", "Applied", "now", outcome{Ended: true, Says: "✔ applied revision main@sha1:1\n"}},
		"nobody has looked yet":         {metav1.ConditionFalse, "PruneBlocked", "too much", "later", outcome{}},
		"a dependency is not ready":     {metav1.ConditionFalse, "DependencyNotReady", "dependency team/db is not ready", "", outcome{Says: "◎ dependency team/db is not ready\n"}},
		"something changes hands":       {metav1.ConditionUnknown, "HandingOver", "has yet to apply it", "later", outcome{Says: "◎ has yet to apply it\n"}},
		"nobody knows whose it is":      {metav1.ConditionUnknown, "HandingOver", "nobody can tell", "now", outcome{Ended: true, Says: "◎ nobody can tell\n", Err: "Kustomization team/web is not ready: HandingOver: nobody can tell"}},
		"it is resumed and hands over":  {metav1.ConditionUnknown, "HandingOver", "has yet to apply it", "", outcome{Says: "◎ has yet to apply it\n"}},
		"its health is not there yet":   {metav1.ConditionUnknown, "Progressing", "waiting for health", "now", outcome{Says: "◎ waiting for health\n"}},
		"a cluster of it is not heard":  {metav1.ConditionUnknown, "ClusterSilent", "east is silent", "now", outcome{Says: "◎ east is silent\n"}},
		"its health is not what it was": {metav1.ConditionFalse, "HealthCheckFailed", "web is not ready", "now", outcome{Ended: true, Err: "Kustomization team/web is not ready: HealthCheckFailed: web is not ready"}},
	} {
		t.Run(name, func(t *testing.T) {
			ks := kustomization("web", tc.status, tc.reason, tc.message)
			ks.Status.LastAppliedRevision, ks.Status.LastHandledReconcileAt = older, "now"
			var out strings.Builder
			w := &waiting{requester: &requester{out: &out}, what: kustomizations, obj: ks, request: tc.request}
			ended, err := w.judge(t.Context(), ks)
			got := outcome{Ended: ended, Says: out.String()}
			if err != nil {
				got.Err = err.Error()
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// TestAReceiverIsWaitedFor: it has no revision, and where it is ready that is all there is to say.
func TestAReceiverIsWaitedFor(t *testing.T) {
	r := &notificationv1.Receiver{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "hook", Generation: 2}}
	r.Status.ObservedGeneration, r.Status.LastHandledReconcileAt = 2, "now"
	for name, tc := range map[string]struct {
		status    metav1.ConditionStatus
		err, says string
	}{
		"it is ready":     {status: metav1.ConditionTrue, says: "✔ Receiver team/hook is ready\n"},
		"it is not ready": {status: metav1.ConditionFalse, err: "Receiver team/hook is not ready: TokenNotFound: create it"},
	} {
		t.Run(name, func(t *testing.T) {
			r.Status.Conditions = []metav1.Condition{{Type: meta.ReadyCondition, Status: tc.status, Reason: "TokenNotFound", Message: "create it", ObservedGeneration: 2}}
			var out strings.Builder
			w := &waiting{requester: &requester{out: &out}, what: receivers, obj: r, request: "now"}
			ended, err := w.judge(t.Context(), r)
			text := ""
			if err != nil {
				text = err.Error()
			}
			if !ended || out.String() != tc.says || text != tc.err {
				t.Errorf("ended %t, says %q, error %q; want %q and %q", ended, out.String(), text, tc.says, tc.err)
			}
		})
	}
}

// TestWhatWasRewrittenIsTold: a commit that was taken although it does not follow the one before is no success like others.
func TestWhatWasRewrittenIsTold(t *testing.T) {
	r := &sourcev1.GitRepository{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "fleet", Generation: 2}}
	r.Status.ObservedGeneration, r.Status.LastHandledReconcileAt = 2, "now"
	r.Status.Conditions = []metav1.Condition{{Type: meta.ReadyCondition, Status: metav1.ConditionTrue, Reason: "Succeeded", ObservedGeneration: 2}}
	r.Status.Artifact = &meta.Artifact{Revision: latest, Metadata: map[string]string{"gitops.flotilla.io/history": "the history was rewritten"}}
	var out strings.Builder
	w := &waiting{requester: &requester{out: &out}, what: sources()[0], obj: r, request: "now"}
	ended, err := w.judge(t.Context(), r)
	if want := "✔ fetched revision " + latest + "\n◎ the history was rewritten\n"; !ended || err != nil || out.String() != want {
		t.Errorf("ended %t, says %q, %v; want %q", ended, out.String(), err, want)
	}
}

// kustomization has tried the latest revision of the source "fleet", and this came of it.
func kustomization(name string, status metav1.ConditionStatus, reason, message string, dependsOn ...string) *kustomizev1.Kustomization {
	ks := &kustomizev1.Kustomization{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: name, Generation: 2}}
	ks.Spec.SourceRef = kustomizev1.CrossNamespaceSourceReference{Kind: sourcev1.GitRepositoryKind, Name: "fleet"}
	for _, other := range dependsOn {
		ks.Spec.DependsOn = append(ks.Spec.DependsOn, kustomizev1.DependencyReference{Name: other})
	}
	ks.Status.ObservedGeneration, ks.Status.LastAttemptedRevision = 2, latest
	ks.Status.Conditions = []metav1.Condition{{Type: "Ready", Status: status, Reason: reason, Message: message, ObservedGeneration: 2}}
	return ks
}

// world is a source, and Kustomizations of it.
func world(objects ...*kustomizev1.Kustomization) client.WithWatch {
	source := &sourcev1.GitRepository{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "fleet"}}
	source.Status.Artifact = &meta.Artifact{Revision: latest}
	b := fake.NewClientBuilder().WithScheme(scheme.New()).WithObjects(source).WithStatusSubresource(&kustomizev1.Kustomization{})
	for _, ks := range objects {
		b = b.WithObjects(ks)
	}
	return interceptor.NewClient(b.Build(), interceptor.Funcs{Watch: watchNamed})
}

// watchNamed watches the object of the name that is asked for, as a server does and the fake client does not.
func watchNamed(ctx context.Context, hub client.WithWatch, list client.ObjectList, opts ...client.ListOption) (watch.Interface, error) {
	var asked client.ListOptions
	asked.ApplyOptions(opts)
	all, err := hub.Watch(ctx, list, opts...)
	if err != nil {
		return nil, err
	}
	return watch.Filter(all, func(e watch.Event) (watch.Event, bool) {
		obj, ok := e.Object.(client.Object)
		return e, ok && (asked.FieldSelector == nil || asked.FieldSelector.Matches(fields.Set{"metadata.name": obj.GetName()}))
	}), nil
}

// TestWhatADependencyWaitsFor: what a person has to mend ends the wait of all that depend on it, once it has tried the
// latest revision, and what passes by itself does not.
func TestWhatADependencyWaitsFor(t *testing.T) {
	const no, yes = metav1.ConditionFalse, metav1.ConditionTrue
	at := func(revision string, ks *kustomizev1.Kustomization) *kustomizev1.Kustomization {
		ks.Status.LastAttemptedRevision = revision
		return ks
	}
	suspended := func(ks *kustomizev1.Kustomization) *kustomizev1.Kustomization {
		ks.Spec.Suspend = true
		return ks
	}
	web := func(dependsOn ...string) *kustomizev1.Kustomization {
		return kustomization("web", no, "DependencyNotReady", "dependency team/db is not ready", dependsOn...)
	}
	for name, tc := range map[string]struct {
		web    *kustomizev1.Kustomization
		others []*kustomizev1.Kustomization
		want   string // what the error ends with; empty: the wait goes on
	}{
		"the brake holds it":              {web("db"), []*kustomizev1.Kustomization{kustomization("db", no, "PruneBlocked", "too much")}, "Kustomization team/db: PruneBlocked: too much"},
		"another one is ready":            {web("ok", "db"), []*kustomizev1.Kustomization{kustomization("ok", yes, "x", ""), kustomization("db", no, "BuildFailed", "a typo")}, "Kustomization team/db: BuildFailed: a typo"},
		"it has yet to try this revision": {web("db"), []*kustomizev1.Kustomization{at(older, kustomization("db", no, "PruneBlocked", "too much"))}, ""},
		"it is on its way":                {web("db"), []*kustomizev1.Kustomization{kustomization("db", metav1.ConditionUnknown, "Progressing", "")}, ""},
		"it is tried again by itself":     {web("db"), []*kustomizev1.Kustomization{kustomization("db", no, "ReconciliationFailed", "conflict")}, ""},
		"its own dependency is refused": {web("db"), []*kustomizev1.Kustomization{
			kustomization("db", no, "DependencyNotReady", "dependency team/disks is not ready", "disks"), kustomization("disks", no, "Forbidden", "may not"),
		}, "Kustomization team/disks: Forbidden: may not"},
		"two wait for each other":                {web("db"), []*kustomizev1.Kustomization{kustomization("db", no, "DependencyNotReady", "", "web")}, ""},
		"it is suspended":                        {web("db"), []*kustomizev1.Kustomization{suspended(kustomization("db", no, "BuildFailed", ""))}, "Kustomization team/db is suspended: flotilla resume kustomization db -n team"},
		"it is suspended at an older revision":   {web("db"), []*kustomizev1.Kustomization{suspended(at(older, kustomization("db", yes, "x", "")))}, "Kustomization team/db is suspended: flotilla resume kustomization db -n team"},
		"it is suspended, and has applied it":    {web("db"), []*kustomizev1.Kustomization{suspended(kustomization("db", yes, "x", ""))}, ""},
		"there is none":                          {web("db"), nil, "commit Kustomization team/db, or correct spec.dependsOn of team/web"},
		"there is none, which somebody may make": {owned(web("db")), []*kustomizev1.Kustomization{at(older, kustomization("root", yes, "x", ""))}, ""},
		"there is none, and nobody makes it":     {owned(web("db")), []*kustomizev1.Kustomization{kustomization("root", yes, "x", "")}, "commit Kustomization team/db, or correct spec.dependsOn of team/web"},
	} {
		t.Run(name, func(t *testing.T) {
			hub := world(append(tc.others, tc.web)...)
			w := &waiting{requester: &requester{hub: hub, out: &strings.Builder{}}, what: kustomizations, obj: tc.web}
			ended, err := w.judge(t.Context(), tc.web)
			want := ""
			if tc.want != "" {
				want = "Kustomization team/web is not ready: DependencyNotReady: dependency team/db is not ready; " + tc.want
			}
			got := ""
			if err != nil {
				got = err.Error()
			}
			if got != want || ended != (want != "") {
				t.Errorf("ended %v with %q, want %q", ended, got, want)
			}
		})
	}
}

func owned(ks *kustomizev1.Kustomization) *kustomizev1.Kustomization {
	ks.Labels = inventory.OwnerLabels(client.ObjectKey{Namespace: "team", Name: "root"})
	return ks
}

// TestAWaitLooksAtDependencies: one that is refused later, without a word from what waits for it, ends the wait.
func TestAWaitLooksAtDependencies(t *testing.T) {
	web := kustomization("web", metav1.ConditionFalse, "DependencyNotReady", "dependency team/db is not ready (PruneBlocked)", "db")
	db := kustomization("db", metav1.ConditionFalse, "PruneBlocked", "too much")
	db.Status.LastAttemptedRevision = older
	hub, now := world(web, db), clocktesting.NewFakeClock(time.Unix(0, 0))
	r := &requester{hub: hub, clock: now, out: &strings.Builder{}, namespace: "team", timeout: time.Minute}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	ended := make(chan error, 1)
	go func() { ended <- r.wait(ctx, kustomizations, web, "") }()
	for !now.HasWaiters() { // its watch stands
		if ctx.Err() != nil {
			t.Fatal("nobody waits")
		}
	}
	if err := hub.Patch(ctx, web.DeepCopy(), client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"labels":{"a":"b"}}}`))); err != nil {
		t.Fatal(err)
	}
	db.Status.LastAttemptedRevision = latest
	if err := hub.Status().Update(ctx, db); err != nil {
		t.Fatal(err)
	}
	for {
		select {
		case err := <-ended:
			if err == nil || !strings.HasSuffix(err.Error(), "; Kustomization team/db: PruneBlocked: too much") {
				t.Errorf("it ended with %v", err)
			}
			return
		case <-ctx.Done():
			t.Fatal("it waits on")
		default:
			now.Step(lookAgain)
		}
	}
}

// A mistyped name is answered with a suggestion.
func TestNoneOfTheName(t *testing.T) {
	r := &requester{hub: world(kustomization("web", metav1.ConditionTrue, "ReconciliationSucceeded", "Applied"))}
	for name, tc := range map[string]struct {
		what *followed
		name string
		want string
	}{
		"a Kustomization":   {kustomizations, "wbe", "there is no Kustomization wbe in namespace team (did you mean web?): flotilla status -A lists them"},
		"a source":          {sources()[0], "flet", "there is no GitRepository flet in namespace team (did you mean fleet?): flotilla status -A lists them"},
		"like none that is": {kustomizations, "payments", "there is no Kustomization payments in namespace team: flotilla status -A lists them"},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := r.get(t.Context(), tc.what, "team", tc.name); err == nil || err.Error() != tc.want {
				t.Errorf("says %v, want %s", err, tc.want)
			}
		})
	}
}
