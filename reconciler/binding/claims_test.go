package binding_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	policyv1alpha1 "github.com/flotilla-io/flotilla/api/policy/v1alpha1"
	workv1alpha1 "github.com/flotilla-io/flotilla/api/work/v1alpha1"
	"github.com/flotilla-io/flotilla/controlplane/servertest"
	"github.com/flotilla-io/flotilla/policies/propagation"
)

// to narrows a policy to clusters of this test.
func (f *fleet) to(p *policyv1alpha1.PropagationPolicy, clusters ...string) *policyv1alpha1.PropagationPolicy {
	names := make([]string, len(clusters))
	for i, c := range clusters {
		names[i] = f.cluster(c)
	}
	p.Spec.Placement = policyv1alpha1.Placement{ClusterAffinity: &policyv1alpha1.ClusterAffinity{ClusterNames: names}}
	return p
}

func TestPreemption(t *testing.T) {
	f := newFleet(t, "a", "b")
	low, high := f.to(f.policy("low", deployments("web")), "a"), f.to(f.policy("high", deployments("web")), "b")
	low.Spec.Priority, high.Spec.Priority = ptr.To[int32](5), ptr.To[int32](5)
	f.create(low, f.deployment("web"))
	eventually(f, "holder", [2]string{"low", "low"}, func() [2]string { return f.holder("web") })
	f.create(high)
	edit(f, high, func(p *policyv1alpha1.PropagationPolicy) { p.Spec.Preemption = policyv1alpha1.PreemptAlways })
	eventually(f, "policy is looked at", true, func() bool { return f.ready(high) != "" })
	f.awaitIdle()
	if got := f.holder("web"); got != [2]string{"low", "low"} {
		t.Errorf("an equal priority preempts: %v", got)
	}

	edit(f, low, func(p *policyv1alpha1.PropagationPolicy) { p.Spec.Priority = ptr.To[int32](4) })
	eventually(f, "holder once the other's priority is lower", [2]string{"high", "high"}, func() [2]string { return f.holder("web") })
	f.arrive("web", "b")
	eventually(f, "images", map[string]string{"b": "2x1"}, func() map[string]string { return f.images("web") })
	f.wrote("a preemption", map[string]int{
		"PATCH propagationpolicies/status": 1, "PATCH deployments": 1, "PATCH resourcebindings": 2, "POST works": 1, "DELETE works": 1,
	})
	if diff := cmp.Diff(1, f.events.reasons()["Deployment PreemptPolicySucceed"]); diff != "" {
		t.Errorf("events PreemptPolicySucceed (-want +got):\n%s\n%v", diff, f.events.all())
	}

	edit(f, low, func(p *policyv1alpha1.PropagationPolicy) {
		p.Spec.Priority, p.Spec.Preemption = ptr.To[int32](6), policyv1alpha1.PreemptAlways
	})
	eventually(f, "holder once the priority is raised", [2]string{"low", "low"}, func() [2]string { return f.holder("web") })
	f.awaitIdle()
	f.stop()
	f.start()
	f.wrote("a restart", map[string]int{})
}

func TestLazy(t *testing.T) {
	f := newFleet(t, "a", "b")
	old := f.deployment("old")
	f.create(old)
	lazy := f.to(f.policy("lazy", deployments("")), "a")
	lazy.Spec.ActivationPreference = policyv1alpha1.LazyActivation
	f.create(lazy)
	eventually(f, "holder of an older template", [2]string{"lazy", ""}, func() [2]string { return f.holder("old") })
	f.create(f.deployment("new"))
	eventually(f, "images of a template made after it", map[string]string{"a": "2x1"}, func() map[string]string { return f.images("new") })
	f.wrote("a Lazy policy, a template before it and one after it", map[string]int{
		"PATCH propagationpolicies/status": 1, "PATCH deployments": 2, "POST resourcebindings": 1, "POST works": 1,
	})

	f.stop()
	f.start()
	f.wrote("a restart", map[string]int{})
	edit(f, old, func(d *appsv1.Deployment) { d.Labels["resourcetemplate.karmada.io/retain-replicas"] = "true" })
	f.wrote("a label of the control plane's own", map[string]int{})

	edit(f, lazy, func(p *policyv1alpha1.PropagationPolicy) { f.to(p, "b") })
	f.wrote("an edit of the Lazy policy", map[string]int{"PATCH propagationpolicies/status": 1})
	f.stop()
	f.start()
	f.wrote("a restart after that", map[string]int{})

	edit(f, old, func(d *appsv1.Deployment) { *d.Spec.Replicas = 3 })
	eventually(f, "images once its user edits it", map[string]string{"b": "3x1"}, func() map[string]string { return f.images("old") })
	f.wrote("the first edit of a template that waited", map[string]int{"PATCH deployments": 1, "POST resourcebindings": 1, "POST works": 1})
	if diff := cmp.Diff(map[string]string{"a": "2x1"}, f.images("new")); diff != "" {
		t.Errorf("the other one must wait for its own (-want +got):\n%s", diff)
	}
	edited := f.deployment("new")
	edit(f, edited, func(d *appsv1.Deployment) { d.Labels["tier"] = "front" })
	f.arrive("new", "b")
	eventually(f, "images of the other after its own edit", map[string]string{"b": "2x1"}, func() map[string]string { return f.images("new") })
	stored := &appsv1.Deployment{}
	f.check(f.env.Hub.Get(f.Context(), client.ObjectKeyFromObject(old), stored))
	if note := stored.Annotations[propagation.WaitsAnnotation]; note != "" {
		t.Errorf("the note of the template that waited is left: %s", note)
	}

	f.awaitIdle()
	edit(f, lazy, func(p *policyv1alpha1.PropagationPolicy) { p.Spec.ActivationPreference = ""; f.to(p, "a", "b") })
	eventually(f, "images once the policy is not Lazy any more", map[string]string{"a": "3x1", "b": "3x1"}, func() map[string]string { return f.images("old") })
}

func TestSchedulePriority(t *testing.T) {
	f := newFleet(t, "a")
	policy := f.policy("p", deployments("web"))
	policy.Spec.SchedulePriority = &policyv1alpha1.SchedulePriority{PriorityClassSource: policyv1alpha1.KubePriorityClass, PriorityClassName: f.ns}
	f.create(policy, f.deployment("web"))
	eventually(f, "policy", policyv1alpha1.PolicyReasonUnknownPriorityClass, func() string { return f.ready(policy) })
	eventually(f, "event", 1, func() int { return f.events.reasons()["Deployment ApplyPolicyFailed"] })
	class := &schedulingv1.PriorityClass{ObjectMeta: metav1.ObjectMeta{Name: f.ns}, Value: 700}
	f.create(class)
	t.Cleanup(func() { f.check(f.env.Hub.Delete(f.Context(), class)) })
	eventually(f, "priority of the binding", 700, func() int {
		if b := f.binding("Deployment", "web"); b != nil && b.Spec.SchedulePriority != nil {
			return int(b.Spec.SchedulePriority.Priority)
		}
		return 0
	})
	eventually(f, "policy", policyv1alpha1.PolicyReasonMatched, func() string { return f.ready(policy) })
}

// counts are the counts in a policy's status, and its last problem.
type counts struct {
	Templates, Bindings, Placed int32
	Problem                     string
}

func (f *fleet) counts(p policyv1alpha1.Policy) counts {
	f.Helper()
	f.check(f.env.Hub.Get(f.Context(), client.ObjectKeyFromObject(p), p))
	s := p.PropagationStatus()
	out := counts{s.Templates, s.Bindings, s.Placed, ""}
	if s.LastProblem != nil {
		out.Problem = s.LastProblem.Object + ": " + s.LastProblem.Message
	}
	return out
}

func TestPolicyStatus(t *testing.T) {
	f := newFleet(t, "a")
	f.stop()
	f.statusEvery = 50 * time.Millisecond
	f.start()
	policy := f.policy("p", deployments(""))
	f.create(policy, f.deployment("web"), f.deployment("api"))
	eventually(f, "counts", counts{2, 2, 2, ""}, func() counts { return f.counts(policy) })
	edit(f, policy, func(p *policyv1alpha1.PropagationPolicy) { f.to(p, "nowhere") })
	eventually(f, "counts where no cluster fits", counts{2, 2, 0, "Deployment " + f.ns}, func() counts {
		got := f.counts(policy)
		got.Problem, _, _ = strings.Cut(got.Problem, "/") // of which template depends on which was slower
		return got
	})
	f.awaitIdle()
	f.stop()
	f.start()
	f.wrote("a restart with a problem", map[string]int{})
	edit(f, policy, func(p *policyv1alpha1.PropagationPolicy) { f.to(p, "a") })
	eventually(f, "counts once a cluster fits again", counts{2, 2, 2, ""}, func() counts { return f.counts(policy) })
	f.check(f.env.Hub.Delete(f.Context(), f.deployment("api")))
	eventually(f, "counts with one template less", counts{1, 1, 1, ""}, func() counts { return f.counts(policy) })
}

// TestEditTouchesItsOwn: an edit of one of many policies causes writes only to what that one
// carries.
func TestEditTouchesItsOwn(t *testing.T) {
	f := newFleet(t, "a", "b")
	wide := f.to(f.policy("everything", deployments("")), "a")
	var mine *policyv1alpha1.PropagationPolicy
	for _, name := range []string{"one", "two", "three", "four"} {
		p := f.to(f.policy(name, deployments(name)), "a")
		f.create(p, f.deployment(name))
		eventually(f, "holder", [2]string{name, name}, func() [2]string { return f.holder(name) })
		mine = p
	}
	f.create(wide)
	f.awaitIdle()
	edit(f, mine, func(p *policyv1alpha1.PropagationPolicy) { f.to(p, "b") })
	f.arrive("four", "b")
	eventually(f, "images", map[string]string{"b": "2x1"}, func() map[string]string { return f.images("four") })
	f.wrote("an edit of one policy of many", map[string]int{
		"PATCH propagationpolicies/status": 1, "PATCH resourcebindings": 2, "POST works": 1, "DELETE works": 1,
	})
	edit(f, wide, func(p *policyv1alpha1.PropagationPolicy) { f.to(p, "b") })
	f.wrote("an edit of one that selects all and carries nothing", map[string]int{"PATCH propagationpolicies/status": 1})
}

// arrive reports, as a cluster would, that the Deployment is there and healthy.
func (f *fleet) arrive(name, cluster string) {
	f.Helper()
	f.arriveAs(schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Deployment"}, name, cluster)
}

// arriveAs reports, as a cluster would, that an object is there and healthy.
func (f *fleet) arriveAs(gvk schema.GroupVersionKind, name, cluster string) {
	f.Helper()
	servertest.Eventually(f, name+" arrives in "+cluster, func(ctx context.Context) error {
		w, ok := f.works(gvk.Kind, name)[cluster]
		if !ok {
			return errors.New("there is no Work")
		}
		meta.SetStatusCondition(&w.Status.Conditions, metav1.Condition{
			Type: workv1alpha1.WorkApplied, Status: metav1.ConditionTrue, Reason: workv1alpha1.WorkAppliedSuccessfulReason, ObservedGeneration: w.Generation,
		})
		w.Status.ManifestStatuses = []workv1alpha1.ManifestStatus{{
			Identifier: workv1alpha1.ResourceIdentifier{Group: gvk.Group, Version: gvk.Version, Kind: gvk.Kind, Namespace: f.ns, Name: name},
			Health:     workv1alpha1.ResourceHealthy,
		}}
		return f.env.Hub.Status().Update(ctx, &w)
	})
}

// fall reports, as a cluster would, that the Deployment is not healthy.
func (f *fleet) fall(name, cluster string) {
	f.Helper()
	w := f.works("Deployment", name)[cluster]
	w.Status.ManifestStatuses[0].Health = workv1alpha1.ResourceUnhealthy
	f.check(f.env.Hub.Status().Update(f.Context(), &w))
}
