package reconciler_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	policyv1alpha1 "github.com/flotilla-io/flotilla/api/policy/v1alpha1"
	workv1alpha1 "github.com/flotilla-io/flotilla/api/work/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/internal/members"
	"github.com/flotilla-io/flotilla/internal/ownership"
)

// formerly returns the name that a Work had while names were made otherwise.
func (m *moves) formerly(work *workv1alpha1.Work) (string, *unstructured.Unstructured) {
	m.Helper()
	obj := &unstructured.Unstructured{}
	m.check(obj.UnmarshalJSON(work.Spec.Workload.Manifests[0].Raw))
	return workv1alpha2.FormerWorkName(obj.GetKind(), obj.GetName(), obj.GetNamespace()), obj
}

// age puts a Work, and what it has in its member, back under the former name of
// it, as an older version left them. It leaves the Work of the new name standing where
// keep says so.
func (m *moves) age(work *workv1alpha1.Work, keep bool) {
	m.Helper()
	cluster, _ := workv1alpha2.ClusterOfExecutionNamespace(work.Namespace)
	name, obj := m.formerly(work)
	annotations := obj.GetAnnotations()
	annotations[workv1alpha2.WorkNameAnnotation] = name
	obj.SetAnnotations(annotations)
	raw, err := json.Marshal(obj.Object)
	m.check(err)

	live := obj.DeepCopy()
	m.check(m.edges[cluster].Get(m.Context(), client.ObjectKeyFromObject(live), live))
	annotations[workv1alpha2.HubAnnotation] = live.GetAnnotations()[workv1alpha2.HubAnnotation]
	live = obj.DeepCopy()
	live.SetAnnotations(annotations)
	m.check(m.edges[cluster].Patch(m.Context(), live, client.Apply, client.FieldOwner(ownership.FieldManager), client.ForceOwnership)) //nolint:staticcheck // what the loop does
	owned, err := ownership.Hash(live)
	m.check(err)

	aged := &workv1alpha1.Work{ObjectMeta: metav1.ObjectMeta{
		Namespace: work.Namespace, Name: name, Labels: work.Labels, Annotations: work.Annotations, Finalizers: work.Finalizers, OwnerReferences: work.OwnerReferences,
	}, Spec: *work.Spec.DeepCopy()}
	aged.Spec.Workload.Manifests[0].Raw = raw
	m.check(m.hub.Hub.Create(m.Context(), aged))
	status := work.Status.DeepCopy()
	for i := range status.Conditions {
		status.Conditions[i].ObservedGeneration = aged.Generation
	}
	status.Applied[0].Desired, status.Applied[0].Observed = members.Hash(raw), owned
	before := aged.DeepCopy()
	aged.Status = *status
	m.check(m.hub.Hub.Status().Patch(m.Context(), aged, client.MergeFrom(before)))

	gone := work.DeepCopy()
	gone.Finalizers = nil
	m.check(m.hub.Hub.Patch(m.Context(), gone, client.MergeFrom(work)))
	m.check(m.hub.Hub.Delete(m.Context(), gone))
	if keep {
		again := &workv1alpha1.Work{ObjectMeta: metav1.ObjectMeta{
			Namespace: work.Namespace, Name: work.Name, Labels: work.Labels, Annotations: work.Annotations, Finalizers: work.Finalizers, OwnerReferences: work.OwnerReferences,
		}, Spec: work.Spec}
		m.check(m.hub.Hub.Create(m.Context(), again))
	}
}

// works returns the Works of a namespace, and of what is in it.
func (m *moves) works(ns string) []workv1alpha1.Work {
	m.Helper()
	var list workv1alpha1.WorkList
	m.check(m.hub.Hub.List(m.Context(), &list))
	return slices.DeleteFunc(list.Items, func(w workv1alpha1.Work) bool {
		_, obj := m.formerly(&w)
		return obj.GetNamespace() != ns && obj.GetName() != ns
	})
}

// held is what a member has, but for what anybody may change about it at any time.
func (m *moves) contents(ns string) map[string]string {
	m.Helper()
	out := map[string]string{}
	for cluster, edge := range m.edges {
		for _, list := range []client.ObjectList{&appsv1.DeploymentList{}, &corev1.ConfigMapList{}, &corev1.PodList{}} {
			m.check(edge.List(m.Context(), list, client.InNamespace(ns)))
			data, err := json.Marshal(list)
			m.check(err)
			var content unstructured.UnstructuredList
			m.check(json.Unmarshal(data, &content.Object))
			items, _, err := unstructured.NestedSlice(content.Object, "items")
			m.check(err)
			for _, item := range items {
				obj := unstructured.Unstructured{Object: item.(map[string]any)}
				annotations := obj.GetAnnotations()
				delete(annotations, workv1alpha2.WorkNameAnnotation)
				obj.SetAnnotations(annotations)
				obj.SetManagedFields(nil)
				obj.SetResourceVersion("")
				obj.SetGeneration(0) // that of a Deployment counts annotations, too
				unstructured.RemoveNestedField(obj.Object, "status", "observedGeneration")
				text, err := json.Marshal(obj.Object)
				m.check(err)
				out[fmt.Sprintf("%s %T %s", cluster, list, obj.GetName())] = string(text)
			}
		}
	}
	return out
}

// TestWorksUnderFormerNamesAreRenamed: a control plane of an older version has its Works,
// and the labels of what goes along, under names that were made otherwise. They are
// renamed once, and the members' objects stay as they are but for the name of the Work.
func TestWorksUnderFormerNamesAreRenamed(t *testing.T) {
	m := newMoves(t)
	ns := m.hub.Namespace(t)
	m.start(ns, nil, from, to)
	allApplied := func() error {
		for _, w := range m.works(ns) {
			if len(w.Status.Applied) == 0 {
				return fmt.Errorf("%s/%s is not applied", w.Namespace, w.Name)
			}
			if w.Status.Applied[0].Desired != members.Hash(w.Spec.Workload.Manifests[0].Raw) {
				return fmt.Errorf("%s/%s is applied in another version", w.Namespace, w.Name)
			}
			if former, _ := m.formerly(&w); w.Name == former || !w.DeletionTimestamp.IsZero() {
				return fmt.Errorf("%s/%s is there", w.Namespace, w.Name)
			}
		}
		return nil
	}
	m.eventually("all is applied", allApplied)
	m.hub.QuietRevision(t)
	m.check((*m.loops)())
	binding := m.attached(ns)

	for i, w := range m.works(ns) {
		m.age(&w, i%2 == 1) // half of them were written when somebody pulled the plug
	}
	aged := m.attached(ns)
	aged.Labels = map[string]string{}
	for key, value := range binding.Labels {
		if strings.HasPrefix(key, workv1alpha2.DependedByLabelPrefix) {
			key = workv1alpha2.DependedByLabelPrefix + workv1alpha2.FormerBindingReferenceKey(ns, "web-deployment")
		}
		aged.Labels[key] = value
	}
	m.check(m.hub.Hub.Update(m.Context(), aged))
	before := m.contents(ns)

	*m.loops = m.hub.StartLoops(t, registerMoves)
	m.eventually("all is renamed", allApplied)
	m.eventually("the labels are renamed", func() error {
		if diff := cmp.Diff(binding.Labels, m.attached(ns).Labels); diff != "" {
			return errors.New(diff)
		}
		return nil
	})
	m.eventually("the objects name the Works", func() error { return m.name(ns) })
	m.hub.QuietRevision(t)
	if diff := cmp.Diff(before, m.contents(ns)); diff != "" {
		t.Errorf("the members (-before +after):\n%s", diff)
	}
	revision := m.hub.QuietRevision(t)
	m.restart()
	if after := m.hub.QuietRevision(t); after != revision {
		t.Errorf("the next start writes %v", m.hub.Written(t, revision))
	}
}

// attached returns the binding of what goes along with "web".
func (m *moves) attached(ns string) *workv1alpha2.ResourceBinding {
	m.Helper()
	b := &workv1alpha2.ResourceBinding{}
	m.check(m.hub.Hub.Get(m.Context(), client.ObjectKey{Namespace: ns, Name: workv1alpha2.BindingName("ConfigMap", "settings")}, b))
	return b
}

// name reports whether the members' objects name the Works that there are.
func (m *moves) name(ns string) error {
	for cluster, edge := range m.edges {
		for _, obj := range []client.Object{&appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: "web"}}, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "settings"}}} {
			if err := edge.Get(m.Context(), client.ObjectKey{Namespace: ns, Name: obj.GetName()}, obj); err != nil {
				return err
			}
			name := obj.GetAnnotations()[workv1alpha2.WorkNameAnnotation]
			if !slices.ContainsFunc(m.works(ns), func(w workv1alpha1.Work) bool {
				return w.Name == name && w.Namespace == workv1alpha2.ExecutionNamespace(cluster)
			}) {
				return fmt.Errorf("%s in %s is of the Work %s", obj.GetName(), cluster, name)
			}
		}
	}
	return nil
}

// TestARenamedWorkPutsNothingBackThatIsReported: what others changed where that is only
// what was reported stays as it is when the Work is renamed.
func TestARenamedWorkPutsNothingBackThatIsReported(t *testing.T) {
	m := newMoves(t)
	ns := m.hub.Namespace(t)
	m.start(ns, func(p *policyv1alpha1.PropagationPolicy) { p.Spec.Drift = policyv1alpha1.DriftReport }, from)
	web := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "web"}}
	drifted := func() error {
		w, err := m.work(from, ns)
		if err != nil {
			return err
		}
		for _, c := range w.Status.Conditions {
			if c.Type == workv1alpha1.WorkDrifted && c.Status == metav1.ConditionTrue {
				if strings.Contains(c.Message, workv1alpha2.WorkNameAnnotation) {
					t.Errorf("tells of its own doing: %s", c.Message)
				}
				return nil
			}
		}
		return errors.New("is not told")
	}
	m.eventually("the Work says that it is applied", func() error {
		w, err := m.work(from, ns)
		if err == nil && len(w.Status.Applied) == 0 {
			return errors.New("it does not")
		}
		return err
	})
	m.hub.QuietRevision(t)
	m.check((*m.loops)())
	w, err := m.work(from, ns)
	m.check(err)
	m.age(w, false)
	m.check(m.edges[from].Patch(m.Context(), web, client.RawPatch(types.StrategicMergePatchType, []byte(`{"spec":{"template":{"spec":{"containers":[{"name":"web","image":"web:2"}]}}}}`))))
	*m.loops = m.hub.StartLoops(t, registerMoves)
	m.eventually("the Work is renamed and tells", drifted)
	m.eventually("the former one is gone", func() error {
		former := &workv1alpha1.Work{}
		err := m.hub.Hub.Get(m.Context(), client.ObjectKey{Namespace: workv1alpha2.ExecutionNamespace(from), Name: workv1alpha2.FormerWorkName("Deployment", "web", ns)}, former)
		if apierrors.IsNotFound(err) {
			return nil
		}
		return errors.Join(errStays, err)
	})
	m.hub.QuietRevision(t)
	m.check(m.edges[from].Get(m.Context(), client.ObjectKeyFromObject(web), web))
	if got := ptr.To(web.Spec.Template.Spec.Containers[0].Image); *got != "web:2" {
		t.Errorf("the member runs %s", *got)
	}
	m.check(drifted())
}
