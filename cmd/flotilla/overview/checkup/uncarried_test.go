package checkup_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	policyv1alpha1 "github.com/flotilla-io/flotilla/api/policy/v1alpha1"
	"github.com/flotilla-io/flotilla/api/scheme"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/cmd/flotilla/overview/checkup"
	"github.com/flotilla-io/flotilla/cmd/flotilla/overview/situation"
)

// bound is the binding of a workload that the policy apps carries.
func bound(name string, change ...func(*workv1alpha2.ResourceBinding)) *workv1alpha2.ResourceBinding {
	b := &workv1alpha2.ResourceBinding{ObjectMeta: metav1.ObjectMeta{Namespace: "ob", Name: name}}
	b.Labels = map[string]string{policyv1alpha1.PropagationPolicyPermanentIDLabel: "1"}
	b.Annotations = map[string]string{policyv1alpha1.PropagationPolicyNamespaceAnnotation: "ob", policyv1alpha1.PropagationPolicyNameAnnotation: "apps"}
	for _, c := range change {
		c(b)
	}
	return b
}

const (
	lacks  = `FailedCreate: Error creating: pods "web-1-" is forbidden: error looking up service account ob/sa: serviceaccount "sa" not found`
	remedy = "set propagateDeps: true in PropagationPolicy ob/apps, or select ServiceAccount ob/sa in a policy, too: it is on the control plane, and no policy carries it"
)

var account = &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: "ob", Name: "sa"}}

// TestAdvise: a status has the next step for a workload that lacks an object which is only on the control plane.
func TestAdvise(t *testing.T) {
	problem := func(kind, message, symptom, next string) situation.Problem {
		return situation.Problem{Kind: kind, Namespace: "ob", Name: "web", Clusters: []string{"east"}, Message: message, Symptom: symptom, Next: next}
	}
	got := situation.Fleet{Problems: []situation.Problem{
		problem("Deployment", "not ready 0/1", lacks, "flotilla events"), problem("Pod", lacks, "", "put it right"), problem("Deployment", "not ready 0/1", "ErrImagePull", "flotilla events"),
	}}
	want := situation.Fleet{Problems: []situation.Problem{
		problem("Deployment", "not ready 0/1", lacks, remedy), problem("Pod", lacks, "", remedy), problem("Deployment", "not ready 0/1", "ErrImagePull", "flotilla events"),
	}}
	hub := fake.NewClientBuilder().WithScheme(scheme.New()).WithObjects(account, bound("web-deployment"), bound("web-pod")).Build()
	checkup.Advise(t.Context(), hub, &got)
	if diff := cmp.Diff(want, got, cmpopts.IgnoreUnexported(situation.Fleet{})); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestUncarried: what a workload lacks in clusters, and the control plane has, is brought by its policy.
func TestUncarried(t *testing.T) {
	wide := func(b *workv1alpha2.ResourceBinding) {
		b.Labels = map[string]string{policyv1alpha1.ClusterPropagationPolicyPermanentIDLabel: "1"}
		b.Annotations = map[string]string{policyv1alpha1.ClusterPropagationPolicyAnnotation: "all"}
	}
	along := func(b *workv1alpha2.ResourceBinding) { b.Spec.PropagateDeps = true }
	for name, tc := range map[string]struct {
		says  string
		there []client.Object
		want  string
	}{
		"no policy carries it":                  {lacks, []client.Object{account, bound("web-deployment")}, remedy},
		"a cluster-wide one carries the others": {lacks, []client.Object{account, bound("web-deployment", wide)}, "set propagateDeps: true in ClusterPropagationPolicy all, or select ServiceAccount ob/sa in a policy, too: it is on the control plane, and no policy carries it"},
		"it is nowhere":                         {lacks, []client.Object{bound("web-deployment")}, ""},
		"it is carried":                         {lacks, []client.Object{account, bound("web-deployment"), bound("sa-serviceaccount")}, ""},
		"it is to come along":                   {lacks, []client.Object{account, bound("web-deployment", along)}, ""},
		"nothing carries the workload":          {lacks, []client.Object{account}, ""},
		"something else is wrong":               {"ErrImagePull: no such image", []client.Object{account, bound("web-deployment")}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			hub := fake.NewClientBuilder().WithScheme(scheme.New()).WithObjects(tc.there...).Build()
			if got := checkup.Uncarried(t.Context(), hub, "Deployment", client.ObjectKey{Namespace: "ob", Name: "web"}, tc.says); got != tc.want {
				t.Errorf("says %q, want %q", got, tc.want)
			}
		})
	}
}
