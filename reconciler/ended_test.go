package reconciler_test

import (
	"errors"
	"fmt"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "github.com/flotilla-io/flotilla/api/cluster/v1alpha1"
	policyv1alpha1 "github.com/flotilla-io/flotilla/api/policy/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
)

// isComplete errs while a Job is not complete by what one control plane says.
func isComplete(m *moves, at client.Client, key client.ObjectKey) error {
	job := &batchv1.Job{}
	if err := at.Get(m.Context(), key, job); err != nil {
		return err
	}
	for _, c := range job.Status.Conditions {
		if c.Type == batchv1.JobComplete && c.Status == corev1.ConditionTrue {
			return nil
		}
	}
	return fmt.Errorf("not complete: %+v", job.Status)
}

// TestAJobThatIsCompleteDoesNotRunOnceMore: the cluster in which it ran leaves the fleet; it is not placed in another, and stays
// complete, until its policy wants it elsewhere.
func TestAJobThatIsCompleteDoesNotRunOnceMore(t *testing.T) {
	m := newMoves(t)
	ns := m.hub.Namespace(t)
	key := client.ObjectKey{Namespace: ns, Name: "import"}
	policy := &policyv1alpha1.PropagationPolicy{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "web"}, Spec: policyv1alpha1.PropagationSpec{
		ResourceSelectors: []policyv1alpha1.ResourceSelector{{APIVersion: "batch/v1", Kind: "Job"}},
	}}
	oneOf(1, policyv1alpha1.PurgeModeGracefully)(policy)
	m.check(m.hub.Hub.Create(t.Context(), policy))
	m.check(m.hub.Hub.Create(t.Context(), &batchv1.Job{
		ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: key.Name},
		Spec: batchv1.JobSpec{Completions: ptr.To[int32](0), Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{ // complete without a Pod
			RestartPolicy: corev1.RestartPolicyNever, Containers: []corev1.Container{{Name: "import", Image: "import:1"}},
		}}},
	}))
	m.eventually("the template is complete", func() error { return isComplete(m, m.hub.Hub, key) })
	m.hub.QuietRevision(t) // all have heard of it
	binding := func() *workv1alpha2.ResourceBinding {
		b := &workv1alpha2.ResourceBinding{}
		m.check(m.hub.Hub.Get(t.Context(), client.ObjectKey{Namespace: ns, Name: workv1alpha2.BindingName("Job", key.Name)}, b))
		return b
	}
	at, other := binding().Spec.Clusters[0].Name, from
	if at == from {
		other = to
	}
	m.check(m.hub.Hub.Delete(t.Context(), &clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: at}}))
	m.eventually("the cluster has left", func() error {
		err := m.hub.Hub.Get(t.Context(), client.ObjectKey{Name: at}, &clusterv1alpha1.Cluster{})
		if err == nil {
			return errStays
		}
		return client.IgnoreNotFound(err)
	})
	m.restart()
	m.hub.QuietRevision(t)
	if b := binding(); len(b.Spec.Clusters) > 0 || len(b.Status.AggregatedStatus) > 0 {
		t.Errorf("it is placed in %v, and its binding says %+v", b.Spec.Clusters, b.Status)
	}
	if err := m.edges[other].Get(t.Context(), key, &batchv1.Job{}); !apierrors.IsNotFound(err) {
		t.Errorf("it runs once more: %v", err)
	}
	m.check(isComplete(m, m.hub.Hub, key))
	m.edit(ns, affinity(other))
	m.eventually("its policy has it run elsewhere", func() error {
		if clusters := binding().Spec.Clusters; len(clusters) != 1 {
			return fmt.Errorf("placed in %v", clusters)
		}
		return errors.Join(isComplete(m, m.edges[other], key), isComplete(m, m.hub.Hub, key))
	})
}
