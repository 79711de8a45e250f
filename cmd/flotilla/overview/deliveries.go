package overview

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/utils/clock"

	workv1alpha1 "github.com/flotilla-io/flotilla/api/work/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/cmd/flotilla/fleet"
	"github.com/flotilla-io/flotilla/cmd/flotilla/overview/lineage"
	"github.com/flotilla-io/flotilla/cmd/flotilla/overview/situation"
	"github.com/flotilla-io/flotilla/cmd/flotilla/progress"
	"github.com/flotilla-io/flotilla/policies/eviction"
	"github.com/flotilla-io/flotilla/policies/plan"
	"github.com/flotilla-io/flotilla/policies/propagation"
	"github.com/flotilla-io/flotilla/policies/rollup"
)

// states maps the states of a rollup.
var states = map[rollup.State]situation.State{
	rollup.Healthy: situation.Ready, rollup.Progressing: situation.Progressing, rollup.Unknown: situation.Unknown, rollup.Failed: situation.Failed,
}

// notYet is the text for what a cluster has yet to apply.
const notYet = "not yet"

// notKnown is the text for a Work that the user may not read, and for one in a silent cluster.
const notKnown = "not known"

// deliveriesOf returns the state of a template in each of its clusters. Works that are nil could
// not be read: then the state comes from the binding.
func deliveriesOf(template *unstructured.Unstructured, b workv1alpha2.Binding, works []*workv1alpha1.Work, silent rollup.Silences) []lineage.Delivery {
	byCluster := map[string]*workv1alpha1.Work{}
	for _, w := range works {
		if cluster, ok := workv1alpha2.ClusterOfExecutionNamespace(w.Namespace); ok {
			byCluster[cluster] = w
		}
	}
	part := rollup.PartOf(template, b, works, silent)
	judged := map[string]rollup.ClusterPart{}
	for _, c := range slices.Concat(part.Clusters, part.Former) {
		judged[c.Name] = c
	}
	var out []lineage.Delivery
	for _, target := range plan.Targets(plan.SpecOf(b)) {
		w, in := byCluster[target.Name], judged[target.Name]
		d := lineage.Delivery{Cluster: target.Name, Replicas: target.Replicas, State: states[in.State], Message: cmp.Or(in.Reason, in.Note)}
		fill(&d, w)
		if works == nil {
			reported(&d, b)
		}
		if part.State != rollup.Healthy {
			asBefore(&d, part.State, in, works == nil, rollup.Released(b))
		}
		switch {
		case in.Outdated && d.Applied == "yes":
			d.Applied = notYet
		case in.State == rollup.Failed && d.Applied == notYet && in.Reason != "":
			d.Applied = "no"
		}
		unheard(&d, silent)
		delete(byCluster, target.Name)
		out = append(out, d)
	}
	kept := map[string]string{}
	for _, k := range eviction.KeptBy(b.BindingSpec()) {
		kept[k.Cluster] = "kept " + k.While(silent.Away).Condition()
	}
	for cluster, w := range byCluster {
		_, text := rollup.OfWork(w)
		d := lineage.Delivery{Cluster: cluster, State: situation.Progressing, Message: cmp.Or(kept[cluster], text, rollup.Goes)}
		if d.Message == rollup.Goes && silent.Has(cluster) {
			d.Message = goesLater
		}
		fill(&d, w)
		unheard(&d, silent)
		out = append(out, d)
	}
	slices.SortFunc(out, byName)
	return out
}

// goesLater is the text for a copy in a cluster that does not report.
const goesLater = "it is to be taken out of this cluster once that is ready again"

// asBefore describes what a cluster has of a template that is not placed as requested: the version
// before. It stays if no policy propagates it any more. blind means that Works cannot be read.
func asBefore(d *lineage.Delivery, state rollup.State, in rollup.ClusterPart, blind, released bool) {
	d.State = states[max(state, in.State)]
	if blind && d.Applied == "yes" {
		d.Applied = notKnown
	}
	if !in.Outdated || d.Applied != "yes" {
		return
	}
	d.Message = strings.TrimSuffix("the version before runs there; "+d.Message, "; ")
	if released {
		d.Applied = "no"
	}
}

// reported adds a cluster's state from the binding, if the user may not read its Work.
func reported(d *lineage.Delivery, b workv1alpha2.Binding) {
	d.Applied = notKnown
	items := b.BindingStatus().AggregatedStatus
	if i := slices.IndexFunc(items, func(item workv1alpha2.AggregatedStatusItem) bool { return item.ClusterName == d.Cluster }); i >= 0 {
		item := &items[i]
		d.Health = rollup.HealthText(templateID(b).GroupKind, item.Health, item.Status)
		switch {
		case item.Applied:
			d.Applied = "yes"
		case item.AppliedMessage != "":
			d.Applied, d.Message = "no", cmp.Or(d.Message, item.AppliedMessage)
		}
	}
}

// unheard resets what is not known because the cluster is silent.
func unheard(d *lineage.Delivery, silent rollup.Silences) {
	s, ok := silent[d.Cluster]
	if !ok {
		return
	}
	if d.State != situation.Unknown { // else its message says it already
		d.Message = strings.TrimSuffix(s.String()+"; "+d.Message, "; ")
	}
	d.State, d.Health = situation.Unknown, string(workv1alpha1.ResourceUnknown)
	if d.Applied == "yes" {
		d.Applied = notKnown
	}
}

// deliveriesOfWorks returns the same if there is no binding.
func deliveriesOfWorks(works []*workv1alpha1.Work, silent rollup.Silences) []lineage.Delivery {
	var out []lineage.Delivery
	for _, w := range works {
		cluster, ok := workv1alpha2.ClusterOfExecutionNamespace(w.Namespace)
		if !ok {
			continue
		}
		state, text := rollup.OfWork(w)
		d := lineage.Delivery{Cluster: cluster, State: states[state], Message: text}
		fill(&d, w)
		unheard(&d, silent)
		out = append(out, d)
	}
	slices.SortFunc(out, byName)
	return out
}

func byName(a, b lineage.Delivery) int {
	if a.Cluster < b.Cluster {
		return -1
	}
	return 1
}

// fill adds the state of a Work; nil means that it does not exist yet.
func fill(d *lineage.Delivery, w *workv1alpha1.Work) {
	if w == nil {
		d.Applied = notYet
		return
	}
	d.Work = &lineage.Object{APIVersion: workv1alpha1.GroupVersion.String(), Kind: workv1alpha1.ResourceKindWork, Namespace: w.Namespace, Name: w.Name}
	d.Health = healthOf(w)
	switch applied := apimeta.FindStatusCondition(w.Status.Conditions, workv1alpha1.WorkApplied); {
	case w.Annotations[propagation.FaultAnnotation] != "": // what it carries is the version before
		d.Applied = "no"
	case applied == nil, rollup.Behind(w):
		d.Applied = notYet
	case applied.Status == metav1.ConditionTrue:
		d.Applied = "yes"
	default:
		d.Applied = "no"
	}
}

func healthOf(w *workv1alpha1.Work) string {
	if len(w.Status.ManifestStatuses) == 0 {
		return ""
	}
	first := w.Status.ManifestStatuses[0]
	return rollup.HealthText(schema.GroupKind{Group: first.Identifier.Group, Kind: first.Identifier.Kind}, first.Health, first.Status)
}

// awayTimeout is how long a request to a silent cluster may take, which may be back by now.
const awayTimeout = 3 * time.Second

// members reads the objects in the clusters concurrently.
func (t *tracer) members(ctx context.Context, template *unstructured.Unstructured, silent rollup.Silences) error {
	mapper, err := t.flags.Factory().ToRESTMapper()
	if err != nil {
		return err
	}
	gvk := template.GroupVersionKind()
	mapping, err := mapper.RESTMapping(gvk.GroupKind(), gvk.Version)
	if err != nil {
		return err
	}
	var clusters []string
	at := map[string]int{}
	for i := range t.out.Clusters {
		if d := &t.out.Clusters[i]; d.Work != nil || d.Applied == "yes" || d.Applied == notKnown {
			at[t.out.Clusters[i].Cluster] = i
			clusters = append(clusters, t.out.Clusters[i].Cluster)
		}
	}
	waiting := progress.Late(t.errOut, clock.RealClock{}, clusters)
	answers := fleet.Each(ctx, clusters, func(ctx context.Context, cluster string) (*unstructured.Unstructured, error) {
		defer waiting.Done(cluster)
		if _, away := silent[cluster]; away {
			var cancel context.CancelFunc
			ctx, cancel = context.WithTimeout(ctx, awayTimeout)
			defer cancel()
		}
		return t.member(ctx, cluster, mapping.Resource, template)
	})
	waiting.End()
	if err := ctx.Err(); err != nil {
		return err
	}
	for _, answer := range answers {
		t.out.Clusters[at[answer.Cluster]].Member = memberOf(answer.Value, answer.Err)
	}
	return nil
}

func (t *tracer) member(ctx context.Context, cluster string, resource schema.GroupVersionResource, like *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	member, err := memberClient(t.flags, cluster)
	if err != nil {
		return nil, err
	}
	obj, err := member.Resource(resource).Namespace(like.GetNamespace()).Get(ctx, like.GetName(), metav1.GetOptions{})
	return obj, unserved(cluster, like, err)
}

// unserved replaces an error that means that a cluster does not serve the kind of an object by one
// that explains it.
func unserved(cluster string, like *unstructured.Unstructured, err error) error {
	if !apierrors.IsNotFound(err) || missing(err) {
		return err
	}
	return fmt.Errorf("cluster %s does not serve %s of %s: flotilla api-resources -C %[1]s lists what it serves", cluster, like.GetKind(), like.GetAPIVersion())
}

// memberClient returns a client of a member through the proxy.
func memberClient(f *fleet.Flags, cluster string) (dynamic.Interface, error) {
	cfg, err := f.Server(cluster, fleet.Timeout).ToRESTConfig()
	if err != nil {
		return nil, err
	}
	return dynamic.NewForConfig(cfg)
}

// memberOf returns what is shown of a member's response.
func memberOf(obj *unstructured.Unstructured, err error) *lineage.Member {
	switch {
	case missing(err):
		return &lineage.Member{Error: "it is not there"}
	case err != nil:
		return &lineage.Member{Error: "not looked at: " + fleet.Describe(err).Error()}
	}
	out := &lineage.Member{UID: string(obj.GetUID()), Created: obj.GetCreationTimestamp().UTC().Format(time.RFC3339), Generation: obj.GetGeneration()}
	if wanted, counts, _ := unstructured.NestedInt64(obj.Object, "spec", "replicas"); counts {
		ready, _, _ := unstructured.NestedInt64(obj.Object, "status", "readyReplicas")
		out.Ready = fmt.Sprintf("%d/%d", ready, wanted)
	}
	return out
}

// missing reports whether an error means that an object does not exist, and not that its kind is not
// served.
func missing(err error) bool {
	var status apierrors.APIStatus
	return apierrors.IsNotFound(err) && errors.As(err, &status) && status.Status().Details != nil && status.Status().Details.Name != ""
}
