package registration

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	clusterv1alpha1 "github.com/flotilla-io/flotilla/api/cluster/v1alpha1"
	workv1alpha1 "github.com/flotilla-io/flotilla/api/work/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
)

// departure follows a cluster in pull mode out of the fleet, and keeps in mind what
// nobody removed there: of a cluster whose agent is silent, the control plane lets its
// Works go.
type departure struct {
	name string
	hub  client.Client
	out  io.Writer

	held map[string][]*unstructured.Unstructured // by Work: what its agent is to remove
	left map[string][]*unstructured.Unstructured // by Work that went without its agent
	well bool
	// taken: another control plane has the cluster, and with it what is left there.
	taken bool
	told  string
	when  time.Time
}

// everySome is how often progress is told.
const everySome = 5 * time.Second

// look takes in how far the cluster is; nil is one that is gone.
func (d *departure) look(ctx context.Context, cluster *clusterv1alpha1.Cluster) error {
	held := map[string][]*unstructured.Unstructured{}
	works := &workv1alpha1.WorkList{}
	err := d.hub.List(ctx, works, client.InNamespace(workv1alpha2.ExecutionNamespace(d.name)))
	if ignoreGone(err) != nil {
		return err
	}
	if err != nil && cluster != nil {
		return nil // one that may not see them
	}
	for i := range works.Items {
		if work := &works.Items[i]; controllerutil.ContainsFinalizer(work, workv1alpha2.ExecutionControllerFinalizer) {
			held[work.Name] = objectsOf(work)
		}
	}
	well := d.well
	if cluster != nil {
		ready := meta.FindStatusCondition(cluster.Status.Conditions, clusterv1alpha1.ClusterConditionReady)
		well = ready != nil && ready.Status == metav1.ConditionTrue
		d.taken = d.taken || ready != nil && ready.Reason == clusterv1alpha1.ClusterClaimedReason
	}
	if d.left == nil {
		d.left = map[string][]*unstructured.Unstructured{}
	}
	for work, objects := range d.held {
		if _, there := held[work]; !there && !well {
			d.left[work] = objects
		}
	}
	d.held, d.well = held, well
	if cluster == nil {
		return nil
	}
	return d.tell()
}

// tell says how far it is, when that is news and some time has passed.
func (d *departure) tell() error {
	state := fmt.Sprintf("%d Works are left that its agent is to remove from cluster %s", len(d.held), d.name)
	switch {
	case len(d.held) == 0:
		state = fmt.Sprintf("no Works of cluster %s are left: waiting for the rest of it to leave", d.name)
	case !d.well:
		state += ", which does not say that it is well: once the control plane is sure of that, it goes on without"
	}
	if state == d.told || len(d.held) == 0 && d.told == "" || time.Since(d.when) < everySome && !d.when.IsZero() {
		return nil
	}
	d.told, d.when = state, time.Now()
	_, err := fmt.Fprintln(d.out, state)
	return err
}

// mostNamed is how many objects are named that stay.
const mostNamed = 20

// leftovers says what stays in the cluster; member, which may be nil, is asked whether
// it is there.
func (d *departure) leftovers(ctx context.Context, member client.Client) []string {
	found := map[string]bool{}
	unseen := member == nil
	for _, objects := range d.left {
		for _, obj := range objects {
			if member != nil {
				err := member.Get(ctx, client.ObjectKeyFromObject(obj), obj)
				if apierrors.IsNotFound(err) || meta.IsNoMatchError(err) {
					continue
				}
				unseen = unseen || err != nil
			}
			found[titleOf(obj)] = true
		}
	}
	switch {
	case len(found) == 0:
		return nil
	case d.taken:
		return []string{fmt.Sprintf("what the fleet ran in cluster %s stays there: the cluster is another control plane's, which may have taken it over", d.name)}
	}
	names := slices.Sorted(maps.Keys(found))
	stays := "stays in the cluster"
	if unseen {
		stays = "stays in the cluster, as far as the control plane knows"
	}
	out := []string{fmt.Sprintf("the agent of cluster %s did not remove what the fleet ran there, which %s:", d.name, stays)}
	for _, name := range names[:min(len(names), mostNamed)] {
		out = append(out, "  "+name)
	}
	if more := len(names) - mostNamed; more > 0 {
		out = append(out, fmt.Sprintf("  and %d more", more))
	}
	out = append(out, "kubectl delete KIND NAME --namespace NAMESPACE removes each of them there; all have the label karmada.io/managed=true")
	if member == nil {
		out = append(out, fmt.Sprintf("an agent that comes back goes on with them: flotilla unregister %s --cluster-kubeconfig FILE takes it out first", d.name))
	}
	return out
}

func titleOf(obj *unstructured.Unstructured) string {
	return obj.GetKind() + " " + strings.TrimPrefix(obj.GetNamespace()+"/"+obj.GetName(), "/")
}

// objectsOf reads what a Work has a cluster run.
func objectsOf(work *workv1alpha1.Work) []*unstructured.Unstructured {
	var out []*unstructured.Unstructured
	for _, m := range work.Spec.Workload.Manifests {
		is := metav1.PartialObjectMetadata{}
		if json.Unmarshal(m.Raw, &is) != nil {
			continue
		}
		obj := &unstructured.Unstructured{}
		obj.SetAPIVersion(cmp.Or(is.APIVersion, "v1"))
		obj.SetKind(is.Kind)
		obj.SetNamespace(is.Namespace)
		obj.SetName(is.Name)
		out = append(out, obj)
	}
	return out
}
