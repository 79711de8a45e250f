package installation

import (
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
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
	var steps []string
	o.Progress = func(step string) { steps = append(steps, step) }
	member := fake.NewClientBuilder().WithScheme(scheme.New()).Build()
	if err := Remove(t.Context(), member, o); err != nil || len(steps) != 0 {
		t.Errorf("of a cluster without an agent: %v, %v", steps, err)
	}
	o.complete()
	d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: o.Namespace, Name: o.Name}}
	if err := member.Create(t.Context(), d); err != nil {
		t.Fatal(err)
	}
	if err := Remove(t.Context(), member, o); err != nil || len(steps) != 1 {
		t.Errorf("of one with it: %v, %v", steps, err)
	}
}

// TestWhatTheAgentKnowsLasts: on a volume where the cluster makes one, each registration in
// a folder of its own; else beside the Pod.
func TestWhatTheAgentKnowsLasts(t *testing.T) {
	class := func(name, isDefault string) *storagev1.StorageClass {
		return &storagev1.StorageClass{ObjectMeta: metav1.ObjectMeta{Name: name, Annotations: map[string]string{defaultClass: isDefault}}}
	}
	for name, tc := range map[string]struct {
		classes []client.Object
		want    bool
	}{
		"there is no class":              {nil, false},
		"none is for claims without one": {[]client.Object{class("slow", "false")}, false},
		"one is":                         {[]client.Object{class("slow", "false"), class("fast", "true")}, true},
	} {
		t.Run(name, func(t *testing.T) {
			member := fake.NewClientBuilder().WithScheme(scheme.New()).WithObjects(tc.classes...).Build()
			lasting, err := Lasting(t.Context(), member)
			if err != nil || lasting != tc.want {
				t.Fatalf("lasting is %v, error %v", lasting, err)
			}
			o := Options{Cluster: "east", Image: "agent:1", Kubeconfig: []byte("one"), Lasting: lasting}
			o.complete()
			pod := o.deployment(metav1.ObjectMeta{Labels: labels()}).Spec.Template.Spec
			claimed, folder, objects := pod.Volumes[1].PersistentVolumeClaim != nil, pod.Containers[0].VolumeMounts[1].SubPath, len(o.objects())
			if claimed != tc.want || (folder == o.fingerprint()) != tc.want || (objects == 7) != tc.want {
				t.Errorf("a claim: %v, in folder %q, of %d objects", claimed, folder, objects)
			}
		})
	}
}
