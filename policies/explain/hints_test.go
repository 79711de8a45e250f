package explain_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1alpha1 "github.com/flotilla-io/flotilla/api/cluster/v1alpha1"
	policyv1alpha1 "github.com/flotilla-io/flotilla/api/policy/v1alpha1"
	workv1alpha1 "github.com/flotilla-io/flotilla/api/work/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/policies/explain"
	"github.com/flotilla-io/flotilla/policies/failover"
	"github.com/flotilla-io/flotilla/policies/placement"
	"github.com/flotilla-io/flotilla/policies/placement/unplaced"
)

// TestHintsCanBePasted checks that next steps end with a command that works when
// it is pasted into a shell.
func TestHintsCanBePasted(t *testing.T) {
	in := input(t)
	bind(t, &in)
	yes := true
	in.Binding.BindingSpec().Suspension = &workv1alpha2.Suspension{Scheduling: &yes}
	in.Binding.SetAnnotations(map[string]string{workv1alpha2.SchedulingDecisionAnnotation: "[]"})
	in.Works = []*workv1alpha1.Work{parse(t, `
metadata: {namespace: karmada-es-c-001, name: web}
status:
  conditions: [{type: Applied, status: "True", reason: AppliedSuccessful, message: ok}]
  manifestStatuses: [{health: Unhealthy}]
`, &workv1alpha1.Work{})}
	want := map[string]string{
		explain.ReasonSchedulingSuspended: "flotilla kubectl edit rb web-deployment -n shop",
		explain.ReasonUnreadableRecord:    "flotilla kubectl annotate rb web-deployment -n shop " + workv1alpha2.SchedulingDecisionAnnotation + "-",
		explain.ReasonUnhealthy:           "flotilla events --for deployment/web -n shop -C c-001",
	}
	got := map[string]string{}
	for _, p := range explain.Explain(in).Problems {
		got[p.Reason] = p.Next
	}
	for reason, command := range want {
		if !strings.HasSuffix(got[reason], ": "+command) {
			t.Errorf("%s: next is %q, want it to end with %q", reason, got[reason], command)
		}
	}
}

// TestAQuotaKeepsItInADrainedCluster checks that a template which a quota keeps
// in a drained cluster is shown as staying, with the quota and what to do about
// it.
func TestAQuotaKeepsItInADrainedCluster(t *testing.T) {
	in := input(t)
	bind(t, &in)
	for _, c := range in.Clusters {
		if c.Name == "c-001" {
			c.Spec.Taints = append(c.Spec.Taints, failover.DrainTaint())
		}
	}
	const message, stays = "FederatedResourceQuota shop/team is exceeded", "It stays in c-001 (untolerated taint {cluster.flotilla.io/drain:NoExecute}): its move is refused: FederatedResourceQuota shop/team is exceeded"
	placement.Decision{Clusters: in.Binding.BindingSpec().Clusters, Record: placement.Record{
		Reason: workv1alpha2.BindingReasonQuotaExceeded, Message: message, Stays: &unplaced.Stays{Message: stays, Clusters: []string{"c-001"}},
	}}.Put(in.Binding)
	const next = "raise the quota, or ask for less: flotilla get federatedresourcequotas -n shop"
	want := []explain.Problem{
		{Reason: explain.ReasonNotPlaced, Message: message, Next: next},
		{Reason: explain.ReasonNoReplacement, Message: "it must be moved, and cannot be: " + stays, Next: next},
	}
	if diff := cmp.Diff(want, explain.Explain(in).Problems[:2]); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestThePolicyThatNearlySelectsIt checks that, for a template that no policy
// selects, the policy that nearly does is named; where none nearly does, no
// policy is named.
func TestThePolicyThatNearlySelectsIt(t *testing.T) {
	named := func(namespace, name, selects string) policyv1alpha1.Policy {
		p := &policyv1alpha1.PropagationPolicy{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: map[string]string{policyv1alpha1.PropagationPolicyPermanentIDLabel: name}}}
		p.Spec.ResourceSelectors = []policyv1alpha1.ResourceSelector{{APIVersion: "apps/v1", Kind: "Deployment", Namespace: namespace, Name: selects}}
		return p
	}
	const create = "create a PropagationPolicy in namespace shop that selects apps/v1 Deployment"
	see := func(policy string) string {
		return "see why PropagationPolicy shop/" + policy + " does not, or create a policy that selects apps/v1 Deployment"
	}
	cases := map[string]struct {
		policies []policyv1alpha1.Policy
		message  string
		next     string
	}{
		"there is none":                 {nil, "no policy selects it", create},
		"one is about another name":     {[]policyv1alpha1.Policy{named("shop", "a", "checkout")}, "no policy selects it; 1 policy is about its kind", create},
		"two are":                       {[]policyv1alpha1.Policy{named("shop", "a", "checkout"), named("shop", "b", "cart")}, "no policy selects it; 2 policies are about its kind", create},
		"a name has a mistake":          {[]policyv1alpha1.Policy{named("shop", "a", "checkout"), named("shop", "z", "fronted")}, "no policy selects it", see("z")},
		"another has more":              {[]policyv1alpha1.Policy{named("shop", "a", "fronted"), named("shop", "b", "frntd")}, "no policy selects it", see("a")},
		"two are as near":               {[]policyv1alpha1.Policy{named("shop", "b", "fronted"), named("shop", "a", "frontendd")}, "no policy selects it", see("a")},
		"it is of another namespace":    {[]policyv1alpha1.Policy{named("shob", "z", "fronted")}, "no policy selects it", create},
		"the one that has fewest, last": {[]policyv1alpha1.Policy{named("shop", "a", "frntd"), named("shop", "b", "fronted")}, "no policy selects it", see("b")},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			in := input(t)
			in.Policies = tc.policies
			in.Template.SetName("frontend")
			for _, p := range explain.Explain(in).Problems {
				if p.Reason != explain.ReasonNoPolicy {
					continue
				}
				if diff := cmp.Diff([]string{tc.message, tc.next}, []string{p.Message, p.Next}); diff != "" {
					t.Errorf("(-want +got):\n%s", diff)
				}
				return
			}
			t.Errorf("nobody is told: %+v", explain.Explain(in).Problems)
		})
	}
}

// TestWhatCannotBeMovedIsAProblem checks that a template that must leave its
// cluster and cannot is a problem, though it runs.
func TestWhatCannotBeMovedIsAProblem(t *testing.T) {
	in := input(t)
	record := placement.Record{Reason: workv1alpha2.BindingReasonSuccess, Stays: &unplaced.Stays{Message: "It stays in c-001 (a taint): no other place: none."}}
	bind(t, &in)
	placement.Decision{Clusters: in.Binding.BindingSpec().Clusters, Record: record}.Put(in.Binding)
	var got []string
	for _, p := range explain.Explain(in).Problems {
		if p.Reason == explain.ReasonNoReplacement {
			got = append(got, p.Message+" | "+p.Next)
		}
	}
	want := []string{"it must be moved, and cannot be: It stays in c-001 (a taint): no other place: none. | take the taint away, have its policy tolerate it, or let the policy mean another cluster with room"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("problems (-want +got):\n%s", diff)
	}
}

// TestAfterADrain checks that, after a drain, what stayed in the cluster need not
// leave any more, and what was moved comes back only when somebody requests a new
// placement.
func TestAfterADrain(t *testing.T) {
	for name, tc := range map[string]struct {
		drains  bool
		record  placement.Record
		returns []string
		problem string
	}{
		"it was moved, and the drain is over": {
			record:  placement.Record{Drained: []string{"c-001"}},
			returns: []string{"not by itself to c-001, of which the drain is over: flotilla uncordon c-001 --return has it placed anew, by what counts now"},
		},
		"it was moved, and the drain goes on": {
			drains: true, record: placement.Record{Drained: []string{"c-001"}},
			returns: []string{"not to c-001 while its drain is in force: flotilla uncordon c-001 --return ends that, and has it placed anew"},
		},
		"it stayed, and the drain is over": {record: placement.Record{Stays: &unplaced.Stays{Clusters: []string{"c-001"}, Message: "It stays in c-001 (untolerated taint {cluster.flotilla.io/drain:NoExecute}): none."}}},
		"it stays": {
			drains: true, record: placement.Record{Stays: &unplaced.Stays{Clusters: []string{"c-001"}, Message: "It stays in c-001 (untolerated taint {cluster.flotilla.io/drain:NoExecute}): none."}},
			problem: "it must be moved, and cannot be: It stays in c-001 (untolerated taint {cluster.flotilla.io/drain:NoExecute}): none.",
		},
		"it stays for another cause": {
			record:  placement.Record{Stays: &unplaced.Stays{Clusters: []string{"c-001"}, Message: "It stays in c-001 (untolerated taint {a:NoExecute}): none."}},
			problem: "it must be moved, and cannot be: It stays in c-001 (untolerated taint {a:NoExecute}): none.",
		},
	} {
		t.Run(name, func(t *testing.T) {
			in := input(t)
			bind(t, &in)
			tc.record.Reason = workv1alpha2.BindingReasonSuccess
			placement.Decision{Clusters: in.Binding.BindingSpec().Clusters, Record: tc.record}.Put(in.Binding)
			for _, c := range in.Clusters {
				if c.Name == "c-001" && tc.drains {
					c.Spec.Taints = append(c.Spec.Taints, failover.DrainTaint())
				}
			}
			e := explain.Explain(in)
			problem := ""
			for _, p := range e.Problems {
				if p.Reason == explain.ReasonNoReplacement {
					problem = p.Message
				}
			}
			if diff := cmp.Diff(tc.returns, e.Placement.Stands.Returns); diff != "" || problem != tc.problem {
				t.Errorf("problem %q, want %q; returns (-want +got):\n%s", problem, tc.problem, diff)
			}
		})
	}
}

// TestWhatToDoWhereTheClusterThatIsMeantIsAway checks that clusters outside the
// policy's affinity are not the reason that is shown, however many there are.
func TestWhatToDoWhereTheClusterThatIsMeantIsAway(t *testing.T) {
	in := input(t)
	in.Policies[0].PropagationSpec().Placement = policyv1alpha1.Placement{ClusterAffinity: &policyv1alpha1.ClusterAffinity{ClusterNames: []string{"c-001"}}}
	for _, c := range in.Clusters {
		if c.Name == "c-001" {
			c.Spec.Taints = append(c.Spec.Taints, corev1.Taint{Key: clusterv1alpha1.TaintClusterNotReady, Effect: corev1.TaintEffectNoSchedule})
		}
	}
	var got []string
	for _, p := range explain.Explain(in).Problems {
		if p.Reason == explain.ReasonNotPlaced {
			got = append(got, p.Next)
		}
	}
	if diff := cmp.Diff([]string{"see why it is not ready: flotilla describe cluster c-001"}, got); diff != "" {
		t.Errorf("what to do (-want +got):\n%s", diff)
	}
}
