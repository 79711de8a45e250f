package explain_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1alpha1 "github.com/flotilla-io/flotilla/api/cluster/v1alpha1"
	policyv1alpha1 "github.com/flotilla-io/flotilla/api/policy/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/policies/explain"
	"github.com/flotilla-io/flotilla/policies/interpreter"
	"github.com/flotilla-io/flotilla/policies/interpreter/kinds"
)

// hook returns the rules of a webhook for the replicas of a Machine, which has
// answered or not.
func hook(answered bool) kinds.Table {
	return kinds.Table{{Group: "apps", Version: "v1", Kind: "Machine"}: {Replicas: func(kinds.Object) (int32, *workv1alpha2.ReplicaRequirements, error) {
		if !answered {
			return 0, nil, &kinds.Pending{Of: "webhook hook.example.io"}
		}
		return 6, nil, nil
	}}}
}

// TestAWebhooksKind checks that the replicas which a webhook returned are taken
// from the binding, as any other number would make another decision, and that a
// failing webhook is a problem.
func TestAWebhooksKind(t *testing.T) {
	const fault = "webhook hook.example.io: context deadline exceeded"
	for name, tc := range map[string]struct {
		bound, failing, refused bool
		replicas                int32 // -1: not known
		problems                []explain.Problem
	}{
		"it answered": {bound: true, replicas: 6},
		"it answered and does not any more": {bound: true, failing: true, replicas: 6, problems: []explain.Problem{{
			Reason: "NotInterpreted", Message: fault, Next: "see that the webhook answers that it names, or correct the customization; it is tried again until it works",
		}}},
		"it has not answered yet": {replicas: -1, problems: []explain.Problem{{
			Reason: "NotBound", Message: "replicas of Machine web: waits for the answer of webhook hook.example.io",
		}}},
		"it has not answered, and its policy says so": {refused: true, replicas: -1, problems: []explain.Problem{{
			Reason: "PolicyProblem", Message: "it was not taken up: " + fault,
			Next: "put right what it says; it is tried again until it works",
		}}},
	} {
		t.Run(name, func(t *testing.T) {
			in := explain.Input{Template: template(t, strings.ReplaceAll(deployment, "kind: Deployment", "kind: Machine"))}
			p := parse(t, strings.ReplaceAll(policy, "kind: Deployment", "kind: Machine"), &policyv1alpha1.PropagationPolicy{})
			p.Spec.Placement = policyv1alpha1.Placement{}
			c := cluster(t, "east", "gold", "")
			c.Status.APIEnablements[0].Resources[0].Kind = "Machine"
			in.Clusters = append(in.Clusters, c)
			in.Interpreter = interpreter.New(hook(tc.bound))
			if tc.refused {
				p.Status.LastProblem = &policyv1alpha1.PolicyProblem{Object: "Machine shop/web", Message: fault}
			}
			in.Policies = append(in.Policies, p)
			if tc.bound {
				b := &workv1alpha2.ResourceBinding{ObjectMeta: metav1.ObjectMeta{
					Namespace: "shop", Name: "web-machine", Labels: map[string]string{workv1alpha2.ResourceBindingPermanentIDLabel: "b-web"},
				}}
				b.Spec.Resource = workv1alpha2.ObjectReference{APIVersion: "apps/v1", Kind: "Machine", Namespace: "shop", Name: "web"}
				b.Spec.Replicas, b.Spec.Clusters = 6, []workv1alpha2.TargetCluster{{Name: "east", Replicas: 6}}
				if tc.failing {
					b.Status.Conditions = []metav1.Condition{{Type: workv1alpha2.Interpreted, Status: metav1.ConditionFalse, Message: fault}}
				}
				in.Binding = b
			}
			got := explain.Explain(in)
			replicas := int32(-1)
			if got.Resource.Replicas != nil {
				replicas = *got.Resource.Replicas
			}
			if replicas != tc.replicas {
				t.Errorf("%d replicas, want %d", replicas, tc.replicas)
			}
			if diff := cmp.Diff(tc.problems, got.Problems); diff != "" {
				t.Errorf("problems (-want +got):\n%s", diff)
			}
			if tc.bound && got.Placement.Now != nil && !got.Placement.Now.Same && got.Placement.Now.Clusters[0].Replicas != 6 {
				t.Errorf("a decision would say %+v", got.Placement.Now)
			}
		})
	}
}

// TestNothingIsDecided checks that nothing is decided for a template that no
// policy carries any more.
func TestNothingIsDecided(t *testing.T) {
	b := &workv1alpha2.ResourceBinding{ObjectMeta: metav1.ObjectMeta{
		Namespace: "shop", Name: "web-deployment", Labels: map[string]string{workv1alpha2.ResourceBindingPermanentIDLabel: "b-web"},
	}}
	b.Spec.Resource = workv1alpha2.ObjectReference{APIVersion: "apps/v1", Kind: "Deployment", Namespace: "shop", Name: "web"}
	b.Spec.Replicas, b.Spec.Clusters = 6, []workv1alpha2.TargetCluster{{Name: "east", Replicas: 6}}
	text := explain.Explain(explain.Input{Template: template(t, deployment), Binding: b, Clusters: []*clusterv1alpha1.Cluster{cluster(t, "east", "gold", "")}}).Text(explain.TextOptions{})
	if want := "  now         nothing is decided: no policy carries the template: what runs, runs on\n"; !strings.Contains(text, want) {
		t.Errorf("it does not say %q:\n%s", want, text)
	}
}
