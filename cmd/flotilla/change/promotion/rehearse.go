package promotion

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "github.com/flotilla-io/flotilla/api/cluster/v1alpha1"
	policyv1alpha1 "github.com/flotilla-io/flotilla/api/policy/v1alpha1"
	workv1alpha1 "github.com/flotilla-io/flotilla/api/work/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/internal/ownership"
	"github.com/flotilla-io/flotilla/policies/plan"
	"github.com/flotilla-io/flotilla/policies/propagation"
)

// rehearse returns an error if the hub would refuse an object, if another policy would
// propagate it, if it would not run in the cluster, or if the object in the member would
// change.
func (p *Promotion) rehearse(ctx context.Context) error {
	in, err := p.world(ctx)
	if err != nil {
		return err
	}
	plans := plan.Fleet(in)
	for i := range p.Items {
		of := objectOf(p.Items[i].Template)
		at := slices.IndexFunc(plans, func(t plan.TemplatePlan) bool {
			return t.Resource.Kind == of.Kind && t.Resource.APIVersion == of.GroupVersion().String() && t.Resource.Namespace == of.Namespace && t.Resource.Name == of.Name
		})
		if err := p.rehearseItem(ctx, &p.Items[i], &plans[at]); err != nil {
			return err
		}
	}
	return nil
}

// world returns everything that decides where the items run, as the hub would have it.
func (p *Promotion) world(ctx context.Context) (plan.FleetInput, error) {
	in := plan.FleetInput{Skip: p.skip, Interpreter: p.o.Interpreter, Now: p.o.Now}
	for i := range p.Items {
		tried := p.Items[i].Template.DeepCopy()
		if !p.Items[i].There {
			if err := p.try(ctx, tried); err != nil {
				return in, err
			}
		}
		in.Templates = append(in.Templates, tried)
	}
	namespace := client.InNamespace(p.Items[0].Template.GetNamespace())
	policies, clusterPolicies := &policyv1alpha1.PropagationPolicyList{}, &policyv1alpha1.ClusterPropagationPolicyList{}
	overrides, clusterOverrides := &policyv1alpha1.OverridePolicyList{}, &policyv1alpha1.ClusterOverridePolicyList{}
	clusters := &clusterv1alpha1.ClusterList{}
	for _, list := range []client.ObjectList{clusterPolicies, clusterOverrides, clusters} {
		if err := p.o.Hub.List(ctx, list); err != nil {
			return in, err
		}
	}
	if namespace != "" {
		for _, list := range []client.ObjectList{policies, overrides} {
			if err := p.o.Hub.List(ctx, list, namespace); err != nil {
				return in, err
			}
		}
	}
	for i := range clusters.Items {
		in.Clusters = append(in.Clusters, &clusters.Items[i])
	}
	in.Policies = slices.Concat(pointers[policyv1alpha1.Policy](policies.Items), pointers[policyv1alpha1.Policy](clusterPolicies.Items))
	in.Overrides = slices.Concat(pointers[policyv1alpha1.Override](overrides.Items), pointers[policyv1alpha1.Override](clusterOverrides.Items))
	if p.Policy == nil || p.PolicyThere {
		return in, nil
	}
	made := p.Policy.DeepCopyObject().(policyv1alpha1.Policy)
	if err := p.try(ctx, made); err != nil {
		return in, err
	}
	in.Policies = append(in.Policies, made)
	return in, nil
}

// try creates an object on the hub in a dry run, and sets it to the object that the hub would
// store.
func (p *Promotion) try(ctx context.Context, obj client.Object) error {
	name := nameOf(obj)
	if err := p.o.Hub.Create(ctx, obj, client.DryRunAll, client.FieldOwner(manager)); err != nil {
		return fmt.Errorf("the control plane does not take %s: %w", name, err)
	}
	return nil
}

// pointers returns pointers to the elements of a list as the interface I.
func pointers[I any, T any](items []T) []I {
	out := make([]I, 0, len(items))
	for i := range items {
		if element, ok := any(&items[i]).(I); ok {
			out = append(out, element)
		}
	}
	return out
}

// rehearseItem checks one item against its plan.
func (p *Promotion) rehearseItem(ctx context.Context, item *Item, planned *plan.TemplatePlan) error {
	of := objectOf(item.Template)
	switch {
	case p.Policy != nil && planned.Policy != nil && propagation.Title(planned.Policy) != propagation.Title(p.Policy):
		return fmt.Errorf("%s would be carried by %s (%s): add cluster %s there, or --auto-create-policy=false leaves it to that policy", of, propagation.Title(planned.Policy), planned.Why, p.o.Cluster)
	case planned.Err != nil && p.cordoned:
		return fmt.Errorf("%s would not run in cluster %s, which is cordoned: flotilla uncordon %[2]s", of, p.o.Cluster)
	case planned.Err != nil:
		return fmt.Errorf("%s would not run in cluster %s: %w", of, p.o.Cluster, planned.Err)
	case planned.Policy == nil:
		p.note("no policy carries %s: it becomes the fleet's once one does that names cluster %s", of, p.o.Cluster)
		return nil
	}
	if p.Policy == nil && !returns(planned.Policy.PropagationSpec()) {
		p.note("%s carries %s and has no preserveResourcesOnDeletion: when the template is deleted, so is what runs", propagation.Title(planned.Policy), of)
	}
	at := slices.IndexFunc(planned.Works, func(w plan.WorkPlan) bool { return w.Cluster == p.o.Cluster })
	if at < 0 {
		return fmt.Errorf("%s carries %s, and not to cluster %s: add the cluster there", propagation.Title(planned.Policy), of, p.o.Cluster)
	}
	if err := planned.Works[at].Err; err != nil {
		return fmt.Errorf("%s would not run in cluster %s: %w", of, p.o.Cluster, err)
	}
	if managed(item.live) {
		return nil // the fleet has already applied it
	}
	if err := p.checkScalers(ctx, item); err != nil {
		return err
	}
	return p.rehearseApply(ctx, item, planned.Works[at].Work)
}

// checkScalers returns an error if something in the member sets the replicas of an item: the
// fleet would reset them each time to the number at the promotion.
func (p *Promotion) checkScalers(ctx context.Context, item *Item) error {
	of := objectOf(item.live)
	_, scaled, _ := unstructured.NestedFieldNoCopy(item.live.Object, "spec", "replicas")
	if !scaled || item.Template.GetLabels()[workv1alpha2.RetainReplicasLabel] == workv1alpha2.RetainReplicasValue {
		return nil
	}
	scalers := &autoscalingv2.HorizontalPodAutoscalerList{}
	err := p.o.Member.List(ctx, scalers, client.InNamespace(of.Namespace))
	switch {
	case meta.IsNoMatchError(err):
		return nil
	case apierrors.IsForbidden(err):
		p.note("whether something scales %s is not known: you may not list HorizontalPodAutoscalers there", of.in(p.o.Cluster))
		return nil
	case err != nil:
		return fmt.Errorf("see what scales %s: %w", of.in(p.o.Cluster), err)
	}
	for i := range scalers.Items {
		target := scalers.Items[i].Spec.ScaleTargetRef
		if target.Name != of.Name || target.Kind != of.Kind || schema.FromAPIVersionAndKind(target.APIVersion, target.Kind).Group != of.Group {
			continue
		}
		found := fmt.Sprintf("HorizontalPodAutoscaler %s scales %s, and the fleet would set its replicas back", scalers.Items[i].Name, of.in(p.o.Cluster))
		if !p.o.AllowChanges {
			return fmt.Errorf("%s: label it %s=%s there first, or --allow-changes promotes it nevertheless", found, workv1alpha2.RetainReplicasLabel, workv1alpha2.RetainReplicasValue)
		}
		p.note("%s", found)
	}
	return nil
}

// rehearseApply finds out, by a dry run in the member, what the Work would change.
func (p *Promotion) rehearseApply(ctx context.Context, item *Item, work *workv1alpha1.Work) error {
	of := objectOf(item.live)
	desired := &unstructured.Unstructured{}
	if err := desired.UnmarshalJSON(work.Spec.Workload.Manifests[0].Raw); err != nil {
		return fmt.Errorf("read the manifest of %s: %w", of, err)
	}
	plan.Prepare(desired, work.Labels[workv1alpha2.WorkPermanentIDLabel])
	retained, err := p.o.Interpreter.Retain(desired, item.live)
	if err == nil {
		desired, err = ownership.Retained(desired, retained, item.live)
	}
	if err != nil {
		return fmt.Errorf("find out what of %s is the cluster's own: %w", of, err)
	}
	data, err := desired.MarshalJSON()
	if err != nil {
		return err
	}
	after := item.live.DeepCopy()
	err = p.o.Member.Patch(ctx, after, client.RawPatch(types.ApplyPatchType, data), client.DryRunAll, client.ForceOwnership, client.FieldOwner(ownership.FieldManager))
	switch {
	case lacksRights(err):
		p.note("what would change in cluster %s was not rehearsed: you may not write %s there", p.o.Cluster, of)
		return nil
	case err != nil:
		return fmt.Errorf("cluster %s would not take %s: %w", p.o.Cluster, of, err)
	case after.GetUID() != item.live.GetUID():
		return errors.New("it was made anew meanwhile: try again")
	}
	paths := differences(content(item.live), content(after))
	switch {
	case len(paths) == 0:
		return nil
	case p.o.AllowChanges:
		p.note("%s would be changed: %s", of.in(p.o.Cluster), listed(paths))
		return nil
	}
	return fmt.Errorf("promotion would change %s (%s): --allow-changes promotes it nevertheless", of.in(p.o.Cluster), listed(paths))
}

// lacking matches a server's message that a user lacks a right: for the request itself, or for
// the rights in a Role. The quoted name in it is the object's.
var lacking = regexp.MustCompile(`^[^ ]+( "[^"]*")? is forbidden: (User "[^"]*" cannot |user "[^"]*" \(groups=.*\) is attempting to grant RBAC permissions)`)

// lacksRights reports whether a request was refused because of missing rights, and not by
// admission such as a webhook or a quota, which has the same code and reason.
func lacksRights(err error) bool {
	return apierrors.IsForbidden(err) && lacking.MatchString(err.Error())
}

// differences returns the paths at which two contents differ, sorted. It omits values: they
// may be secrets.
func differences(a, b any) []string {
	var out []string
	compare("", a, b, &out)
	slices.Sort(out)
	return out
}

func compare(path string, a, b any, out *[]string) {
	switch x := a.(type) {
	case map[string]any:
		y, same := b.(map[string]any)
		if !same {
			break
		}
		keys := maps.Clone(x)
		maps.Copy(keys, y)
		for key := range keys {
			compare(path+"/"+strings.ReplaceAll(strings.ReplaceAll(key, "~", "~0"), "/", "~1"), x[key], y[key], out)
		}
		return
	case []any:
		y, same := b.([]any)
		if !same || len(x) != len(y) {
			break
		}
		for i := range x {
			compare(path+"/"+strconv.Itoa(i), x[i], y[i], out)
		}
		return
	}
	if !equality.Semantic.DeepEqual(a, b) {
		*out = append(*out, path)
	}
}

// maxListed is how many paths a message names.
const maxListed = 3

func listed(paths []string) string {
	if more := len(paths) - maxListed; more > 0 {
		return strings.Join(paths[:maxListed], ", ") + " and " + strconv.Itoa(more) + " more"
	}
	return strings.Join(paths, ", ")
}
