package checkup

import (
	"cmp"
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	policyv1alpha1 "github.com/flotilla-io/flotilla/api/policy/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/cmd/flotilla/overview/situation"
	"github.com/flotilla-io/flotilla/policies/propagation"
	"github.com/flotilla-io/flotilla/policies/symptom"
)

// Uncarried returns how a workload gets the object that it lacks according to a cluster's message, if the control plane
// has that object and no policy propagates it; empty if not, or if that is not known.
func Uncarried(ctx context.Context, hub client.Reader, kind string, workload client.ObjectKey, says string) string {
	lacks, found := symptom.Lacks(says)
	if !found || workload.Namespace == "" {
		return ""
	}
	in := func(name string) client.ObjectKey { return client.ObjectKey{Namespace: workload.Namespace, Name: name} }
	object := &metav1.PartialObjectMetadata{}
	object.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind(lacks.Kind))
	if hub.Get(ctx, in(lacks.Name), object) != nil || object.DeletionTimestamp != nil {
		return ""
	}
	if err := hub.Get(ctx, in(workv1alpha2.BindingName(lacks.Kind, lacks.Name)), &workv1alpha2.ResourceBinding{}); !apierrors.IsNotFound(err) {
		return ""
	}
	binding := &workv1alpha2.ResourceBinding{}
	if hub.Get(ctx, in(workv1alpha2.BindingName(kind, workload.Name)), binding) != nil || binding.Spec.PropagateDeps {
		return ""
	}
	policy, claimed := propagation.Claimed(binding)
	if !claimed {
		return ""
	}
	policyKind := policyv1alpha1.ResourceKindPropagationPolicy
	if policy.Namespace == "" {
		policyKind = policyv1alpha1.ResourceKindClusterPropagationPolicy
	}
	return fmt.Sprintf("set propagateDeps: true in %s %s, or select %s %s in a policy, too: it is on the control plane, and no policy carries it",
		policyKind, policy, lacks.Kind, in(lacks.Name))
}

// Advise sets the next step for workloads of a status that lack an object which no policy propagates.
func Advise(ctx context.Context, hub client.Reader, found *situation.Fleet) {
	shown := found.Problems[:min(len(found.Problems), situation.MostProblems)]
	for i, p := range shown {
		if len(p.Clusters) == 0 {
			continue
		}
		workload := client.ObjectKey{Namespace: p.Namespace, Name: p.Name}
		shown[i].Next = cmp.Or(Uncarried(ctx, hub, p.Kind, workload, p.Message+"\n"+p.Symptom), p.Next)
	}
}
