package installation

import (
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/flotilla-io/flotilla/api/scheme"
)

// TestAnAgentOfANewRegistrationStartsAnew: that of the one before has a folder of its own,
// and takes nothing from another control plane.
func TestAnAgentOfANewRegistrationStartsAnew(t *testing.T) {
	pods := func(kubeconfig string) map[string]string {
		o := Options{Cluster: "east", Image: "agent:1", Kubeconfig: []byte(kubeconfig)}
		o.complete()
		return o.deployment(metav1.ObjectMeta{Labels: labels()}).Spec.Template.Annotations
	}
	if same, other := pods("one"), pods("two"); same[credentialsAnnotation] != pods("one")[credentialsAnnotation] || same[credentialsAnnotation] == other[credentialsAnnotation] {
		t.Errorf("its Pods are marked %v and %v", same, other)
	}
}

// TestADryRunNamesWhatIsThere: an agent that is a process has no Deployment.
func TestADryRunNamesWhatIsThere(t *testing.T) {
	o := Options{Cluster: "east", DryRun: true}
	var said []string
	o.Progress = func(step string) { said = append(said, step) }
	member := fake.NewClientBuilder().WithScheme(scheme.New()).Build()
	if err := Remove(t.Context(), member, o); err != nil || len(said) != 0 {
		t.Errorf("of a cluster without an agent: %v, %v", said, err)
	}
	o.complete()
	d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: o.Namespace, Name: o.Name}}
	if err := member.Create(t.Context(), d); err != nil {
		t.Fatal(err)
	}
	if err := Remove(t.Context(), member, o); err != nil || len(said) != 1 {
		t.Errorf("of one with it: %v, %v", said, err)
	}
}
