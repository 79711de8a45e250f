package switchover_test

import (
	"context"
	"strings"
	"testing"
	"time"

	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	"github.com/fluxcd/pkg/apis/meta"
	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/flotilla-io/flotilla/api/scheme"
	"github.com/flotilla-io/flotilla/internal/loop"
	"github.com/flotilla-io/flotilla/reconciler/apply/applier"
	"github.com/flotilla-io/flotilla/reconciler/apply/lastgood"
	"github.com/flotilla-io/flotilla/reconciler/apply/siblings"
	"github.com/flotilla-io/flotilla/reconciler/apply/switchover"
	"github.com/flotilla-io/flotilla/reconciler/inventory"
	"github.com/flotilla-io/flotilla/reconciler/revisiongate"
)

var (
	noon    = time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)
	present = siblings.Artifact{Source: inventory.GitRepository(client.ObjectKey{Namespace: "team", Name: "fleet"}), Digest: "sha256:2", Revision: "main@sha1:2"}
)

func key(name string) client.ObjectKey { return client.ObjectKey{Namespace: "team", Name: name} }

// named returns a Kustomization of the source that has applied what the source fetched before.
func named(name string, change ...func(*kustomizev1.Kustomization)) *kustomizev1.Kustomization {
	ks := &kustomizev1.Kustomization{
		ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: name, Generation: 1},
		Spec:       kustomizev1.KustomizationSpec{SourceRef: kustomizev1.CrossNamespaceSourceReference{Kind: "GitRepository", Name: "fleet"}, Prune: true},
	}
	at("sha256:1", "main@sha1:1")(ks)
	says(meta.ReadyCondition, metav1.ConditionTrue, meta.ReconciliationSucceededReason)(ks)
	for _, c := range change {
		c(ks)
	}
	return ks
}

// at has a Kustomization have applied an artifact.
func at(digest, revision string) func(*kustomizev1.Kustomization) {
	return func(ks *kustomizev1.Kustomization) {
		ks.Status.LastAttemptedRevision, ks.Status.History = revision, meta.History{{}}
		lastgood.Write(&ks.Status, lastgood.Record{Revision: revision, Artifact: digest, Objects: "sha256:objects"})
	}
}

func says(condition string, status metav1.ConditionStatus, reason string) func(*kustomizev1.Kustomization) {
	return func(ks *kustomizev1.Kustomization) {
		apimeta.SetStatusCondition(&ks.Status.Conditions, metav1.Condition{Type: condition, Status: status, Reason: reason, ObservedGeneration: 1})
	}
}

// tries has a Kustomization have tried the present revision.
func tries(ks *kustomizev1.Kustomization) { ks.Status.LastAttemptedRevision = present.Revision }

// begins has a Kustomization have applied nothing yet.
func begins(ks *kustomizev1.Kustomization) {
	ks.Status.History = nil
	says(meta.ReadyCondition, metav1.ConditionUnknown, meta.ProgressingReason)(ks)
}

func dependsOn(name string) func(*kustomizev1.Kustomization) {
	return func(ks *kustomizev1.Kustomization) {
		ks.Spec.DependsOn = []kustomizev1.DependencyReference{{Name: name}}
	}
}

func deleted(ks *kustomizev1.Kustomization) {
	ks.DeletionTimestamp, ks.Finalizers = &metav1.Time{Time: noon}, []string{"x"}
}

func owns(names ...string) func(*kustomizev1.Kustomization) {
	return func(ks *kustomizev1.Kustomization) { ks.Status.Inventory = inventory.Record(configs(names...)) }
}

func configs(names ...string) []inventory.Entry {
	var out []inventory.Entry
	for _, name := range names {
		out = append(out, inventory.Entry{ID: inventory.ID{Namespace: "team", Name: name, GroupKind: schema.GroupKind{Kind: "ConfigMap"}}, Version: "v1"})
	}
	return out
}

// child is a Kustomization as files have it: "suspended" is so, and "name-on-base" depends on base.
func child(name string) *kustomizev1.Kustomization {
	ks := &kustomizev1.Kustomization{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: name}, Spec: named(name).Spec}
	if ks.Spec.Path = "./" + name; name == "suspended" {
		ks.Spec.Suspend = true
	}
	if _, base, depends := strings.Cut(name, "-on-"); depends {
		dependsOn(base)(ks)
	}
	return ks
}

// groups are those of a control plane with objects, whose Kustomizations want what wants says.
func groups(clock *clocktesting.FakePassiveClock, wants map[string][]string, objects ...client.Object) *switchover.Groups {
	hub := fake.NewClientBuilder().WithScheme(scheme.New()).WithObjects(objects...).Build()
	build := func(_ context.Context, ks *kustomizev1.Kustomization, _ siblings.Artifact) (siblings.Wants, error) {
		out := siblings.Wants{Entries: configs(wants[ks.Name]...)}
		for _, name := range wants[ks.Name+" overrides"] {
			out.Rules = append(out.Rules, overrides("team", name))
		}
		for _, name := range wants[ks.Name+" makes"] {
			out.Children = append(out.Children, child(name))
		}
		return out, nil
	}
	index := siblings.New(hub, build, func(ks *kustomizev1.Kustomization, _ string) bool { return ks.Labels["stranger"] == "" })
	differs := func(_ context.Context, ks *kustomizev1.Kustomization, _ siblings.Artifact) (bool, error) {
		return ks.Labels["differs"] != "no", nil
	}
	return switchover.New(hub, hub, index, differs, clock)
}

func TestWhoIsWaitedFor(t *testing.T) {
	written := says(revisiongate.Condition, metav1.ConditionTrue, revisiongate.ReasonWritten)
	now, here, nobody := at(present.Digest, present.Revision), []client.ObjectKey{key("shelf")}, []client.ObjectKey(nil)
	suspended := func(ks *kustomizev1.Kustomization) { ks.Spec.Suspend = true }
	elsewhere := func(ks *kustomizev1.Kustomization) { ks.Spec.SourceRef.Name = "other" }
	unready := says(meta.ReadyCondition, metav1.ConditionFalse, meta.HealthCheckFailedReason)
	blocked := says(meta.ReadyCondition, metav1.ConditionFalse, meta.DependencyNotReadyReason)
	byExpression := func(ks *kustomizev1.Kustomization) { ks.Spec.DependsOn[0].ReadyExpr = "dep.spec.suspend" }
	applied := func(ks *kustomizev1.Kustomization) {
		ks.Status.LastAppliedRevision, ks.Status.ObservedGeneration = present.Revision, ks.Generation
	}
	barred := func(ks *kustomizev1.Kustomization) {
		blocked(ks)
		apimeta.FindStatusCondition(ks.Status.Conditions, meta.ReadyCondition).Message = "dependency other/base may not be looked at: forbidden"
	}
	for name, tc := range map[string]struct {
		shelf   *kustomizev1.Kustomization
		others  []client.Object
		written []client.ObjectKey
		waits   bool
	}{
		"one that has applied the revision":                          {shelf: named("shelf", now), written: here},
		"one that has written it, and waits for this one":            {shelf: named("shelf", now, written), written: here},
		"one that has yet to try it":                                 {shelf: named("shelf"), waits: true},
		"one that writes it":                                         {shelf: named("shelf", tries, says(revisiongate.Condition, metav1.ConditionTrue, meta.ProgressingReason)), waits: true},
		"one that had written the one before, and waited for others": {shelf: named("shelf", written), waits: true},
		"one that writes it again":                                   {shelf: named("shelf", now, says(revisiongate.Condition, metav1.ConditionTrue, meta.ProgressingReason)), waits: true},
		"one whose spec was changed since it had":                    {shelf: named("shelf", now, func(ks *kustomizev1.Kustomization) { ks.Generation = 2 }), waits: true},
		"one that was made for it, and waits for health":             {shelf: named("shelf", tries, begins, says(meta.HealthyCondition, metav1.ConditionUnknown, meta.ProgressingReason)), written: here},
		"one that was made for it, and writes it":                    {shelf: named("shelf", tries, begins), waits: true},
		"one that still waits for the health of the one before":      {shelf: named("shelf", says(meta.HealthyCondition, metav1.ConditionUnknown, meta.ProgressingReason)), waits: true},
		"one that was unhealthy once it had":                         {shelf: named("shelf", now, says(meta.ReadyCondition, metav1.ConditionFalse, meta.HealthCheckFailedReason)), written: here},
		"one that refuses it":                                        {shelf: named("shelf", tries, says(meta.ReadyCondition, metav1.ConditionFalse, "PruneBlocked"))},
		"one that refused the one before":                            {shelf: named("shelf", says(meta.ReadyCondition, metav1.ConditionFalse, "PruneBlocked")), waits: true},
		"one that waits for a dependency":                            {shelf: named("shelf", tries, dependsOn("base"), says(meta.ReadyCondition, metav1.ConditionFalse, meta.DependencyNotReadyReason)), others: []client.Object{named("base")}, waits: true},
		"one that waits for a dependency of another source":          {shelf: named("shelf", tries, dependsOn("base"), blocked), others: []client.Object{named("base", elsewhere, unready)}, waits: true},
		"one that waits for what does not exist":                     {shelf: named("shelf", tries, dependsOn("base"), blocked)},
		"one that has yet to say that it waits for what does not":    {shelf: named("shelf", dependsOn("base")), waits: true},
		"one that waited for what did not exist at the one before":   {shelf: named("shelf", dependsOn("base"), blocked)},
		"one that hands over, and waits for what does not exist":     {shelf: named("shelf", deleted, dependsOn("base"), blocked), waits: true},
		"one that waits for one that waits for what does not exist":  {shelf: named("shelf", tries, dependsOn("base"), blocked), others: []client.Object{named("base", tries, dependsOn("root"), blocked)}},
		"one that waits for one that is suspended":                   {shelf: named("shelf", tries, dependsOn("base"), blocked), others: []client.Object{named("base", suspended)}},
		"one that waits for one that refuses the revision":           {shelf: named("shelf", tries, dependsOn("base"), blocked), others: []client.Object{named("base", tries, says(meta.ReadyCondition, metav1.ConditionFalse, "PruneBlocked"))}},
		"one that waits for one that has applied it by now":          {shelf: named("shelf", tries, dependsOn("base"), blocked), others: []client.Object{named("base", now, suspended, applied)}, waits: true},
		"one that waits for one of another source that is stalled":   {shelf: named("shelf", tries, dependsOn("base"), blocked), others: []client.Object{named("base", elsewhere, unready, says(meta.StalledCondition, metav1.ConditionTrue, "BuildFailed"))}},
		"one that waits for an expression about what is suspended":   {shelf: named("shelf", tries, dependsOn("base"), blocked, byExpression), others: []client.Object{named("base", suspended)}, waits: true},
		"one that may not look at what it depends on":                {shelf: named("shelf", tries, dependsOn("base"), barred), others: []client.Object{named("base")}},
		"one that may not use the source":                            {shelf: named("shelf", says(meta.ReadyCondition, metav1.ConditionFalse, "AccessDenied"))},
		"one that asks for what is not supported":                    {shelf: named("shelf", says(meta.ReadyCondition, metav1.ConditionFalse, "NotSupported"))},
		"one with an account that cannot be":                         {shelf: named("shelf", says(meta.ReadyCondition, metav1.ConditionFalse, "InvalidServiceAccount"))},
		"one with an annotation that makes no sense":                 {shelf: named("shelf", says(meta.ReadyCondition, metav1.ConditionFalse, "InvalidAnnotation"))},
		"one whose spec is no longer the one that is not supported":  {shelf: named("shelf", says(meta.ReadyCondition, metav1.ConditionFalse, "NotSupported"), func(ks *kustomizev1.Kustomization) { ks.Generation = 2 }), waits: true},
		"one that depends on this one":                               {shelf: named("shelf", dependsOn("shop"))},
		"one that depends on one that depends on this one":           {shelf: named("shelf", dependsOn("base")), others: []client.Object{named("base", dependsOn("shop"))}},
		"one that depends on itself by another one":                  {shelf: named("shelf", dependsOn("base")), others: []client.Object{named("base", dependsOn("shelf"))}, waits: true},
		"one that is suspended":                                      {shelf: named("shelf", suspended)},
		"one of another source":                                      {shelf: named("shelf", func(ks *kustomizev1.Kustomization) { ks.Spec.SourceRef.Name = "other" })},
		"one that is gone":                                           {written: here},
		"one that is being deleted, and hands over":                  {shelf: named("shelf", deleted, now), waits: true},
		"one that is being deleted, and held by the brake":           {shelf: named("shelf", deleted, says(meta.StalledCondition, metav1.ConditionTrue, "PruneBlocked"))},
		"one that is being deleted, and leaves all as it is":         {shelf: named("shelf", deleted, func(ks *kustomizev1.Kustomization) { ks.Spec.DeletionPolicy = kustomizev1.DeletionPolicyOrphan })},
		"one that has not said anything yet":                         {shelf: named("shelf", func(ks *kustomizev1.Kustomization) { ks.Status = kustomizev1.KustomizationStatus{} }), waits: true},
		"one that failed for what passes":                            {shelf: named("shelf", tries, says(meta.ReadyCondition, metav1.ConditionFalse, meta.ReconciliationFailedReason)), waits: true},
		"one that may not delete what it drops":                      {shelf: named("shelf", tries, says(meta.ReadyCondition, metav1.ConditionFalse, meta.PruneFailedReason))},
	} {
		t.Run(name, func(t *testing.T) {
			objects := append(tc.others, named("shop"))
			if tc.shelf != nil {
				objects = append(objects, tc.shelf)
			}
			clock := clocktesting.NewFakePassiveClock(noon)
			x := groups(clock, nil, objects...)
			request := switchover.Wait{Of: named("shop"), At: present, With: here}
			got, err := x.Await(t.Context(), request)
			if diff := cmp.Diff(tc.written, got); diff != "" || (err != nil) != tc.waits {
				t.Fatalf("written by (-want +got):\n%s\n%v", diff, err)
			}
			if !tc.waits {
				return
			}
			want := "all of revision main@sha1:2 is written; it counts once Kustomization team/shelf has written it, too: their objects belong together"
			if tc.shelf != nil && tc.shelf.DeletionTimestamp != nil {
				want = "all of revision main@sha1:2 is written; it counts once Kustomization team/shelf is gone, which is being deleted: their objects belong together"
			}
			if outcome := loop.As(err, ""); outcome.Class != loop.ClassWaiting || outcome.Reason != meta.ProgressingReason || outcome.Err.Error() != want {
				t.Errorf("waits: %+v", outcome)
			}
			clock.SetTime(noon.Add(29 * time.Second))
			if _, err := x.Await(t.Context(), request); err == nil || loop.As(err, "").After > time.Second {
				t.Errorf("just before the time is over it looks again after %v", loop.As(err, ""))
			}
			clock.SetTime(noon.Add(30 * time.Second))
			if got, err := x.Await(t.Context(), request); err != nil || cmp.Diff(nobody, got) != "" {
				t.Errorf("when the time is over it counts with %v: %v", got, err)
			}
			x.Forget(key("shop"))
			request.At.Digest = "sha256:3"
			if _, err := x.Await(t.Context(), request); err == nil {
				t.Error("the next revision waits for nobody")
			}
		})
	}
}

// Commits that come faster than others are waited for do not hold up for ever what none of them has brought.
func TestACommitDoesNotBeginTheWaitAnew(t *testing.T) {
	clock := clocktesting.NewFakePassiveClock(noon)
	x := groups(clock, nil, named("shop"), named("shelf"))
	await := func(at siblings.Artifact) bool {
		_, err := x.Await(t.Context(), switchover.Wait{Of: named("shop"), At: at, With: []client.ObjectKey{key("shelf")}})
		return err != nil
	}
	next := siblings.Artifact{Source: present.Source, Digest: "sha256:3", Revision: "main@sha1:3"}
	for _, step := range []struct {
		after time.Duration
		at    siblings.Artifact
		waits bool
	}{
		{0, present, true}, {16 * time.Second, next, true}, {29 * time.Second, next, true}, {30 * time.Second, next, false},
		{time.Hour, next, true}, // nobody was waited for meanwhile, as where the revision was refused
	} {
		clock.SetTime(noon.Add(step.after))
		if waits := await(step.at); waits != step.waits {
			t.Errorf("after %v it waits for the other one with %s: %t", step.after, step.at.Revision, waits)
		}
	}
}

func TestOneThatIsAboutToBeMadeIsWaitedFor(t *testing.T) {
	x := groups(clocktesting.NewFakePassiveClock(noon), nil, named("shop"))
	leaving := siblings.Handover{Passing: configs("a"), Successors: map[inventory.ID]client.ObjectKey{configs("a")[0].ID: key("shelf")}}
	if _, err := x.Await(t.Context(), switchover.Wait{Of: named("shop"), At: present, With: []client.ObjectKey{key("shelf")}, Leaving: leaving}); err == nil {
		t.Error("it is not waited for")
	}
}

func TestOneThatTheCacheLacksIsWaitedFor(t *testing.T) {
	store := func(objects ...client.Object) client.Client {
		return fake.NewClientBuilder().WithScheme(scheme.New()).WithObjects(objects...).Build()
	}
	x := switchover.New(store(named("shop")), store(named("shop"), named("shelf")), nil, nil, clocktesting.NewFakePassiveClock(noon))
	if written, err := x.Await(t.Context(), switchover.Wait{Of: named("shop"), At: present, With: []client.ObjectKey{key("shelf")}}); err == nil {
		t.Errorf("it is not waited for; written by %v", written)
	}
}

// change is what an apply does to a ConfigMap that a Kustomization holds.
func change(action applier.Action, name, owner string) applier.Change {
	obj := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "ConfigMap"}}
	obj.SetNamespace("team")
	obj.SetName(name)
	out := applier.Change{Desired: obj, Action: action}
	if owner != "" {
		out.Owner = key(owner)
	}
	return out
}

func TestWith(t *testing.T) {
	member := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "a", Labels: inventory.OwnerLabels(key("shelf"))}}
	passing := siblings.Handover{Passing: configs("a"), Successors: map[inventory.ID]client.ObjectKey{configs("a")[0].ID: key("shelf")}}
	says := func(with ...client.ObjectKey) func(*kustomizev1.Kustomization) {
		return func(ks *kustomizev1.Kustomization) {
			apimeta.SetStatusCondition(&ks.Status.Conditions, metav1.Condition{
				Type: revisiongate.Condition, Status: metav1.ConditionTrue, Reason: meta.ProgressingReason, Message: switchover.Text(present.Revision, "sha256:x", with, ""),
			})
		}
	}
	shared := change(applier.Configured, "a", "shelf")
	shared.Shares = true
	taken := change(applier.Skipped, "a", "shelf")
	taken.Takes = true
	seen := applier.Observed{configs("a")[0].ID: &unstructured.Unstructured{}}
	for name, tc := range map[string]struct {
		query   switchover.Query
		objects []client.Object
		wants   map[string][]string
		want    string
	}{
		"nothing moves":                             {query: switchover.Query{Changes: []applier.Change{change(applier.Created, "a", ""), change(applier.Configured, "b", "shop")}, Removed: configs("a"), Seen: seen}},
		"an object is taken":                        {query: switchover.Query{Changes: []applier.Change{change(applier.Configured, "a", "shelf")}}, want: "team/shelf"},
		"one is that is left as it is":              {query: switchover.Query{Changes: []applier.Change{taken}}, want: "team/shelf"},
		"another one has what is left as it is":     {query: switchover.Query{Changes: []applier.Change{change(applier.Skipped, "a", "shelf")}}},
		"several write an object":                   {query: switchover.Query{Changes: []applier.Change{shared}}},
		"it is of another source":                   {query: switchover.Query{Changes: []applier.Change{change(applier.Configured, "a", "foreign")}}},
		"a tenant's labels stand on it":             {query: switchover.Query{Changes: []applier.Change{change(applier.Configured, "a", "tenant")}}},
		"a tenant says that it waits for this one":  {query: switchover.Query{Changes: []applier.Change{change(applier.Configured, "a", "shop")}}, objects: []client.Object{named("claimant", stranger, says(key("shop")))}},
		"who had it is gone":                        {query: switchover.Query{Changes: []applier.Change{change(applier.Configured, "a", "nobody")}}},
		"who had it is deleted, others take, too":   {query: switchover.Query{Changes: []applier.Change{change(applier.Configured, "a", "ending")}}, wants: map[string][]string{"shelf": {"b"}, "shop": {"a"}}, want: "team/ending team/shelf"},
		"who had it is switched with a third one":   {query: switchover.Query{Changes: []applier.Change{change(applier.Configured, "a", "between")}}, objects: []client.Object{named("between", says(key("shelf"), key("shop")))}, want: "team/between team/shelf"},
		"so is one that is deleted":                 {query: switchover.Query{Changes: []applier.Change{change(applier.Configured, "a", "going")}}, objects: []client.Object{named("going", deleted, owns("a"), says(key("between"))), named("between", says(key("shelf")))}, want: "team/between team/going team/shelf"},
		"who had it was, at another revision":       {query: switchover.Query{Changes: []applier.Change{change(applier.Configured, "a", "between")}, At: siblings.Artifact{Source: present.Source, Digest: "sha256:3", Revision: "main@sha1:3"}}, objects: []client.Object{named("between", says(key("shelf")))}, want: "team/between"},
		"an object is given":                        {query: switchover.Query{Leaving: passing, Removed: configs("a"), Seen: seen}, want: "team/shelf"},
		"it was taken already":                      {query: switchover.Query{Removed: configs("a")}, objects: []client.Object{member}, want: "team/shelf"},
		"somebody has deleted what left":            {query: switchover.Query{Removed: configs("a")}},
		"one is given, and was before":              {query: switchover.Query{Of: named("shop", at(present.Digest, present.Revision)), Leaving: passing, Removed: configs("a"), Seen: seen}},
		"one is given still, while drift is mended": {query: switchover.Query{Of: named("shop", at(present.Digest, present.Revision)), Changes: []applier.Change{change(applier.Configured, "b", "shop")}, Leaving: passing, Removed: configs("a"), Seen: seen}, want: "team/shelf"},
		"the one that it has said so of is deleted": {query: switchover.Query{Of: named("shop", says(key("ending")))}, wants: map[string][]string{"other": {"b"}, "shop": {"a"}}, objects: []client.Object{named("other")}, want: "team/ending team/other"},
		"the one that led before has said so":       {query: switchover.Query{Of: named("shop", says(key("shelf"), key("ending")))}, want: "team/ending team/shelf"},
		"it said so of another revision":            {query: switchover.Query{Of: named("shop", says(key("shelf"))), At: siblings.Artifact{Source: present.Source, Digest: "sha256:3", Revision: "main@sha1:3"}}},
		"it said that nobody else is waited for":    {query: switchover.Query{Of: named("shop", says())}},
	} {
		t.Run(name, func(t *testing.T) {
			objects := append([]client.Object{named("shelf"), named("ending", deleted, owns("a", "b")), named("tenant", stranger), named("foreign", func(ks *kustomizev1.Kustomization) { ks.Spec.SourceRef.Name = "other" })}, tc.objects...)
			x := groups(clocktesting.NewFakePassiveClock(noon), tc.wants, objects...)
			if tc.query.Of == nil {
				tc.query.Of = named("shop")
			}
			if tc.query.At.Digest == "" {
				tc.query.At = present
			}
			with, err := x.With(t.Context(), tc.query)
			if err != nil {
				t.Fatal(err)
			}
			var names []string
			for _, key := range with {
				names = append(names, key.String())
			}
			if got := strings.Join(names, " "); got != tc.want {
				t.Errorf("with %q, want %q", got, tc.want)
			}
		})
	}
}

// Where nothing moves nothing is read but from the cache: there is nothing else that it could be read from.
func TestNothingIsReadWhereNothingMoves(t *testing.T) {
	x := switchover.New(fake.NewClientBuilder().WithScheme(scheme.New()).Build(), nil, nil, nil, clocktesting.NewFakePassiveClock(noon))
	with, err := x.With(t.Context(), switchover.Query{
		Of: named("shop"), At: present, Changes: []applier.Change{change(applier.Created, "a", ""), change(applier.Configured, "b", "shop")},
		Leaving: siblings.Handover{Deleted: configs("c")}, Removed: configs("c"), Seen: applier.Observed{configs("c")[0].ID: &unstructured.Unstructured{}},
	})
	if err != nil || len(with) > 0 {
		t.Errorf("with %v: %v", with, err)
	}
	if written, err := x.Await(t.Context(), switchover.Wait{Of: named("shop"), At: present}); err != nil || len(written) > 0 {
		t.Errorf("written by %v: %v", written, err)
	}
}

// What was written is not said to be less by a run that changes nothing of it.
func TestAnnounce(t *testing.T) {
	had := func(reason, message string) *kustomizev1.Kustomization {
		return named("shop", func(ks *kustomizev1.Kustomization) {
			ks.Status.Conditions = append(ks.Status.Conditions, metav1.Condition{Type: revisiongate.Condition, Status: metav1.ConditionTrue, Reason: reason, Message: message})
		})
	}
	unchanged, changed := []applier.Change{change(applier.Unchanged, "a", "shop")}, []applier.Change{change(applier.Configured, "a", "shop")}
	for name, tc := range map[string]struct {
		of      *kustomizev1.Kustomization
		changes []applier.Change
		want    string
	}{
		"a switch begins":               {named("shop"), changed, meta.ProgressingReason},
		"it goes on":                    {had(meta.ProgressingReason, "all"), unchanged, meta.ProgressingReason},
		"all of it is written":          {had(revisiongate.ReasonWritten, "all"), unchanged, revisiongate.ReasonWritten},
		"somebody has changed what was": {had(revisiongate.ReasonWritten, "all"), changed, meta.ProgressingReason},
		"all of another one is written": {had(revisiongate.ReasonWritten, "another"), unchanged, meta.ProgressingReason},
	} {
		t.Run(name, func(t *testing.T) {
			if reason, text := switchover.Announce(tc.of, tc.changes, revisiongate.All, "all"); reason != tc.want || text != "all" {
				t.Errorf("%s: %s", reason, text)
			}
		})
	}
}

func TestText(t *testing.T) {
	shelf, far := key("shelf"), client.ObjectKey{Namespace: "other", Name: "far"}
	for want, with := range map[string][]client.ObjectKey{
		"Clusters keep what they have until all of revision main@sha1:2 (sha256:x) is written":                                                              nil,
		"Clusters keep what they have until all of revision main@sha1:2 (sha256:x) is written, here and in Kustomization team/shelf":                        {shelf},
		"Clusters keep what they have until all of revision main@sha1:2 (sha256:x) is written, here and in Kustomizations of another namespace, team/shelf": {far, shelf},
	} {
		if got := switchover.Text("main@sha1:2", "sha256:x", with, "team"); got != want {
			t.Errorf("got  %s\nwant %s", got, want)
		}
	}
}
