package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	schedulingv1 "k8s.io/api/scheduling/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "github.com/flotilla-io/flotilla/api/cluster/v1alpha1"
	configv1alpha1 "github.com/flotilla-io/flotilla/api/config/v1alpha1"
	policyv1alpha1 "github.com/flotilla-io/flotilla/api/policy/v1alpha1"
	workv1alpha1 "github.com/flotilla-io/flotilla/api/work/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/cmd/flotilla/customization"
	"github.com/flotilla-io/flotilla/cmd/flotilla/fleet"
	"github.com/flotilla-io/flotilla/cmd/flotilla/overview/listing"
	"github.com/flotilla-io/flotilla/cmd/flotilla/overview/remains"
	"github.com/flotilla-io/flotilla/policies/explain"
	"github.com/flotilla-io/flotilla/policies/placement"
	"github.com/flotilla-io/flotilla/policies/propagation"
)

// pageSize is the limit of objects in one response of a list.
const pageSize = 500

// explainReader reads the input of an explanation.
type explainReader struct {
	hub       client.Reader
	mapper    meta.RESTMapper
	namespace string
	now       func() time.Time

	stack *customization.Stack
	hooks []*configv1alpha1.ResourceInterpreterWebhookConfiguration
	bound boundTo

	mu sync.Mutex // guards in while lists are read concurrently
	in explain.Input
}

// read returns the input for the explanation of the template with that kind and name, or of the
// only template in the files if these are empty.
func (r *explainReader) read(ctx context.Context, kind, name string, files manifests) (explain.Input, error) {
	r.in = explain.Input{Skip: propagation.DefaultSkipRules(), Now: r.now()}
	var err error
	if r.in.Template, err = r.template(ctx, kind, name, files); err != nil {
		return explain.Input{}, err
	}
	group, side := errgroup.WithContext(ctx)
	for _, f := range []func(context.Context) error{
		r.binding, r.policies, r.clusterPolicies, r.overrides, r.clusterOverrides, r.clusters, r.customizations,
	} {
		group.Go(func() error { return f(side) })
	}
	if err := group.Wait(); err != nil {
		return explain.Input{}, err
	}
	r.in.Interpreter = r.stack.With(customization.Recorded(r.hooks, r.in.Template.GroupVersionKind(), r.in.Binding))
	if err := files.lay(&r.in, r.namespace); err != nil {
		return explain.Input{}, err
	}
	if err := r.peers(ctx); err != nil {
		return explain.Input{}, err
	}
	if r.in.Definition, err = definitionOf(ctx, r.hub, r.mapper, r.in.Template.GroupVersionKind()); apierrors.IsForbidden(err) {
		r.unread(explain.UnreadDefinition, "where the definition of its kind goes")
	} else if err != nil {
		return explain.Input{}, err
	}
	if err := r.priorities(ctx); err != nil {
		return explain.Input{}, err
	}
	r.in.Quotas, err = quotasOver(ctx, r.hub, &r.in)
	return r.in, r.tolerate(err, explain.UnreadOverrides, "the FederatedResourceQuotas of namespace "+r.in.Template.GetNamespace())
}

// definitionOf returns the binding of the CustomResourceDefinition of a kind; nil if there is
// none.
func definitionOf(ctx context.Context, hub client.Reader, mapper meta.RESTMapper, gvk schema.GroupVersionKind) (workv1alpha2.Binding, error) {
	mapping, err := mapper.RESTMapping(gvk.GroupKind(), gvk.Version)
	if meta.IsNoMatchError(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	name, ok := placement.Definition(mapping.Resource.GroupResource())
	if !ok {
		return nil, nil
	}
	b := &workv1alpha2.ClusterResourceBinding{}
	if err := hub.Get(ctx, client.ObjectKey{Name: name}, b); err != nil {
		return nil, client.IgnoreNotFound(err)
	}
	return b, nil
}

// customizations reads the control plane's customizations and webhooks. An older control plane
// may not have these kinds.
func (r *explainReader) customizations(ctx context.Context) error {
	all, err := customizationsOf(ctx, r.hub)
	if meta.IsNoMatchError(err) || apierrors.IsNotFound(err) {
		err = nil
	}
	r.stack = customization.NewStack(machine(), all)
	if err := r.tolerate(err, explain.UnreadCustomizations, "the ResourceInterpreterCustomizations"); err != nil {
		return err
	}
	err = pages(ctx, r.hub, &configv1alpha1.ResourceInterpreterWebhookConfigurationList{}, func(list *configv1alpha1.ResourceInterpreterWebhookConfigurationList) {
		for i := range list.Items {
			r.hooks = append(r.hooks, &list.Items[i])
		}
	})
	if meta.IsNoMatchError(err) || apierrors.IsNotFound(err) {
		err = nil
	}
	return r.tolerate(err, explain.UnreadCustomizations, "the ResourceInterpreterWebhookConfigurations")
}

// priorities reads the PriorityClasses if a policy names one.
func (r *explainReader) priorities(ctx context.Context) error {
	if !slices.ContainsFunc(r.in.Policies, func(p policyv1alpha1.Policy) bool { return p.PropagationSpec().SchedulePriority != nil }) {
		return nil
	}
	r.in.Priorities = map[string]int32{}
	return r.tolerate(pages(ctx, r.hub, &schedulingv1.PriorityClassList{}, func(list *schedulingv1.PriorityClassList) {
		for i := range list.Items {
			r.in.Priorities[list.Items[i].Name] = list.Items[i].Value
		}
	}), explain.UnreadPriorities, "the PriorityClasses")
}

// quotasOver reads the quotas that limit the overrides of the template's namespace; nil if there
// are no overrides. An older control plane may not have this kind.
func quotasOver(ctx context.Context, hub client.Reader, in *explain.Input) ([]*policyv1alpha1.FederatedResourceQuota, error) {
	ns := in.Template.GetNamespace()
	if ns == "" || !slices.ContainsFunc(in.Overrides, func(o policyv1alpha1.Override) bool { return o.GetNamespace() == ns }) {
		return nil, nil
	}
	var out []*policyv1alpha1.FederatedResourceQuota
	err := pages(ctx, hub, &policyv1alpha1.FederatedResourceQuotaList{}, func(list *policyv1alpha1.FederatedResourceQuotaList) {
		for i := range list.Items {
			out = append(out, &list.Items[i])
		}
	}, client.InNamespace(ns))
	if meta.IsNoMatchError(err) || apierrors.IsNotFound(err) {
		return nil, nil
	}
	return out, err
}

// knows reports whether there is a cluster of the name, or the clusters could not be read.
func knows(in explain.Input, name string) bool {
	unread := slices.ContainsFunc(in.Unread, func(u explain.Unread) bool { return u.What == explain.UnreadClusters })
	return unread || slices.ContainsFunc(in.Clusters, func(c *clusterv1alpha1.Cluster) bool { return c.Name == name })
}

// template returns the object to explain: the one in the files, as the control plane would store
// it, or else the stored one.
func (r *explainReader) template(ctx context.Context, kind, name string, files manifests) (*unstructured.Unstructured, error) {
	if kind == "" {
		obj, err := files.only()
		if err != nil {
			return nil, err
		}
		mapping, err := r.mapper.RESTMapping(obj.GroupVersionKind().GroupKind(), obj.GroupVersionKind().Version)
		if err != nil {
			return nil, err
		}
		return r.merged(ctx, obj, mapping)
	}
	mapping, err := r.resolve(kind)
	if err != nil {
		return nil, err
	}
	if obj := files.find(mapping.GroupVersionKind.GroupKind(), name); obj != nil {
		return r.merged(ctx, obj, mapping)
	}
	obj, err := r.get(ctx, mapping, scope(mapping, "", r.namespace), name)
	switch {
	case err != nil:
		return nil, err
	case isBinding(mapping.GroupVersionKind):
		return r.bindingsTemplate(ctx, obj)
	case namesVersion(kind, mapping.GroupVersionKind):
		return obj, nil
	}
	return asCarried(ctx, r, obj), nil
}

func isBinding(gvk schema.GroupVersionKind) bool {
	return gvk.Group == workv1alpha2.GroupVersion.Group &&
		(gvk.Kind == workv1alpha2.ResourceKindResourceBinding || gvk.Kind == workv1alpha2.ResourceKindClusterResourceBinding)
}

// bindingsTemplate returns the template of a binding, for users who name the binding.
func (r *explainReader) bindingsTemplate(ctx context.Context, binding *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	var spec workv1alpha2.ResourceBinding
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(binding.Object, &spec); err != nil {
		return nil, fmt.Errorf("read %s %s: %w", binding.GetKind(), binding.GetName(), err)
	}
	ref := spec.Spec.Resource
	gvk := schema.FromAPIVersionAndKind(ref.APIVersion, ref.Kind)
	mapping, err := r.mapper.RESTMapping(gvk.GroupKind(), gvk.Version)
	if err != nil {
		return nil, err
	}
	return r.get(ctx, mapping, ref.Namespace, ref.Name)
}

// resolve finds the kind for a word such as Deployment, deploy, deployments.apps or
// deployments.v1.apps.
func (r *explainReader) resolve(word string) (*meta.RESTMapping, error) {
	versioned, group := schema.ParseResourceArg(strings.ToLower(word))
	var gvk schema.GroupVersionKind
	err := error(&meta.NoResourceMatchError{})
	if versioned != nil {
		gvk, err = r.mapper.KindFor(*versioned)
	}
	if err != nil && meta.IsNoMatchError(err) {
		gvk, err = r.mapper.KindFor(group.WithVersion(""))
	}
	var several *meta.AmbiguousResourceError
	switch {
	case err == nil:
		return r.mapper.RESTMapping(gvk.GroupKind(), gvk.Version)
	case errors.As(err, &several):
		var names []string
		for _, kind := range several.MatchingKinds {
			names = append(names, strings.ToLower(kind.Kind)+"."+kind.Group)
		}
		slices.Sort(names)
		return nil, fmt.Errorf("%q may mean several kinds: say which of %s", word, strings.Join(slices.Compact(names), ", "))
	case meta.IsNoMatchError(err):
		return nil, fleet.UnknownKind(word)
	default:
		return nil, err
	}
}

// scope returns the namespace for an object of the kind: its own, or else that of the call;
// empty for a cluster-scoped kind.
func scope(mapping *meta.RESTMapping, own, otherwise string) string {
	if mapping.Scope.Name() == meta.RESTScopeNameRoot {
		otherwise = ""
	}
	return orElse(own, otherwise)
}

func (r *explainReader) get(ctx context.Context, mapping *meta.RESTMapping, namespace, name string) (*unstructured.Unstructured, error) {
	obj := &unstructured.Unstructured{}
	obj.SetGroupVersionKind(mapping.GroupVersionKind)
	err := r.hub.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, obj)
	if apierrors.IsNotFound(err) {
		where, flag := "", ""
		if namespace != "" {
			where, flag = " in namespace "+namespace, " -n "+namespace
		}
		return nil, notThereError{fmt.Errorf("there is no %s %s%s%s: flotilla get %s%[6]s lists them; flotilla trace %[5]s/%[2]s%[6]s says what became of one that was removed; -f explains a manifest that is not there yet",
			mapping.GroupVersionKind.Kind, name, where, fleet.Meant(ctx, r.hub, mapping.GroupVersionKind, client.ObjectKey{Namespace: namespace, Name: name}), mapping.Resource.GroupResource(), flag)}
	}
	return obj, err
}

// notThereError means that the template is not on the control plane.
type notThereError struct{ error }

// merged returns a manifest as the control plane would store it.
func (r *explainReader) merged(ctx context.Context, obj *unstructured.Unstructured, mapping *meta.RESTMapping) (*unstructured.Unstructured, error) {
	obj.SetNamespace(scope(mapping, obj.GetNamespace(), r.namespace))
	stored, err := r.get(ctx, mapping, obj.GetNamespace(), obj.GetName())
	var missing notThereError
	switch {
	case errors.As(err, &missing):
		return obj, nil
	case apierrors.IsForbidden(err):
		r.unread(explain.UnreadBinding, "what the control plane holds of it")
		return obj, nil
	case err != nil:
		return nil, err
	}
	obj.SetUID(stored.GetUID())
	obj.SetResourceVersion(stored.GetResourceVersion())
	obj.SetGeneration(stored.GetGeneration())
	obj.SetDeletionTimestamp(stored.GetDeletionTimestamp())
	claimOf(stored).Set(obj)
	return obj, nil
}

// claimOf returns the claim in the metadata of obj.
func claimOf(obj *unstructured.Unstructured) propagation.Claim {
	labels, annotations := propagation.ClaimKeys()
	return propagation.Claim{Labels: only(obj.GetLabels(), labels), Annotations: only(obj.GetAnnotations(), annotations)}
}

func only(all map[string]string, keys []string) map[string]string {
	out := map[string]string{}
	for _, key := range keys {
		if value, has := all[key]; has {
			out[key] = value
		}
	}
	return out
}

// binding reads the binding of the template, and its Works.
func (r *explainReader) binding(ctx context.Context) error {
	b, err := r.bound.of(ctx, r.hub, r.in.Template)
	switch {
	case apierrors.IsNotFound(err):
		return nil
	case err != nil:
		return r.tolerate(err, explain.UnreadBinding, "its binding")
	}
	r.in.Binding = b
	return r.works(ctx, b)
}

// works reads the Works of a binding in all clusters with one list.
func (r *explainReader) works(ctx context.Context, b workv1alpha2.Binding) error {
	label := workv1alpha2.ResourceBindingPermanentIDLabel
	if b.GetNamespace() == "" {
		label = workv1alpha2.ClusterResourceBindingPermanentIDLabel
	}
	id := b.GetLabels()[label]
	if id == "" {
		return nil
	}
	works := []*workv1alpha1.Work{}
	err := pages(ctx, r.hub, &workv1alpha1.WorkList{}, func(list *workv1alpha1.WorkList) {
		for i := range list.Items {
			works = append(works, &list.Items[i])
		}
	}, client.MatchingLabels{label: id})
	if apierrors.IsForbidden(err) {
		return nil // the binding's status says nearly the same
	}
	if err != nil {
		return err
	}
	r.in.Works, err = remains.Recalled(ctx, r.hub, b, works)
	return err
}

// peers reads the bindings from which the affinity of the template may be computed, if it has or
// may get an affinity group.
func (r *explainReader) peers(ctx context.Context) error {
	grouped := r.in.Binding != nil && r.in.Binding.BindingSpec().WorkloadAffinityGroups != nil
	if !grouped && !slices.ContainsFunc(r.in.Policies, func(p policyv1alpha1.Policy) bool { return p.PropagationSpec().Placement.WorkloadAffinity != nil }) {
		return nil
	}
	namespace := r.in.Template.GetNamespace()
	if namespace == "" {
		return r.tolerate(pages(ctx, r.hub, &workv1alpha2.ClusterResourceBindingList{}, func(list *workv1alpha2.ClusterResourceBindingList) {
			for i := range list.Items {
				r.in.Bindings = append(r.in.Bindings, &list.Items[i])
			}
		}), explain.UnreadPeers, "the bindings of its group")
	}
	return r.tolerate(pages(ctx, r.hub, &workv1alpha2.ResourceBindingList{}, func(list *workv1alpha2.ResourceBindingList) {
		for i := range list.Items {
			r.in.Bindings = append(r.in.Bindings, &list.Items[i])
		}
	}, client.InNamespace(namespace)), explain.UnreadPeers, "the bindings of its group")
}

func (r *explainReader) policies(ctx context.Context) error {
	ns := r.in.Template.GetNamespace()
	if ns == "" {
		return nil
	}
	return r.tolerate(pages(ctx, r.hub, &policyv1alpha1.PropagationPolicyList{}, func(list *policyv1alpha1.PropagationPolicyList) {
		for i := range list.Items {
			r.policy(&list.Items[i])
		}
	}, client.InNamespace(ns)), explain.UnreadPolicies, "the PropagationPolicies of namespace "+ns)
}

func (r *explainReader) clusterPolicies(ctx context.Context) error {
	return r.tolerate(pages(ctx, r.hub, &policyv1alpha1.ClusterPropagationPolicyList{}, func(list *policyv1alpha1.ClusterPropagationPolicyList) {
		for i := range list.Items {
			r.policy(&list.Items[i])
		}
	}), explain.UnreadPolicies, "the ClusterPropagationPolicies")
}

func (r *explainReader) policy(p policyv1alpha1.Policy) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.in.Policies = append(r.in.Policies, p)
}

func (r *explainReader) overrides(ctx context.Context) error {
	ns := r.in.Template.GetNamespace()
	if ns == "" {
		return nil
	}
	return r.tolerate(pages(ctx, r.hub, &policyv1alpha1.OverridePolicyList{}, func(list *policyv1alpha1.OverridePolicyList) {
		for i := range list.Items {
			r.override(&list.Items[i])
		}
	}, client.InNamespace(ns)), explain.UnreadOverrides, "the OverridePolicies of namespace "+ns)
}

func (r *explainReader) clusterOverrides(ctx context.Context) error {
	return r.tolerate(pages(ctx, r.hub, &policyv1alpha1.ClusterOverridePolicyList{}, func(list *policyv1alpha1.ClusterOverridePolicyList) {
		for i := range list.Items {
			r.override(&list.Items[i])
		}
	}), explain.UnreadOverrides, "the ClusterOverridePolicies")
}

func (r *explainReader) override(o policyv1alpha1.Override) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.in.Overrides = append(r.in.Overrides, o)
}

func (r *explainReader) clusters(ctx context.Context) error {
	clusters, _, err := listing.Clusters(ctx, r.hub, nil)
	for _, c := range clusters {
		r.in.Clusters = append(r.in.Clusters, c.Cluster)
	}
	return r.tolerate(err, explain.UnreadClusters, "the clusters")
}

// tolerate records what the user may not read, and returns all other errors.
func (r *explainReader) tolerate(err error, what, text string) error {
	if apierrors.IsForbidden(err) {
		r.unread(what, text)
		return nil
	}
	return err
}

func (r *explainReader) unread(what, text string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.in.Unread = append(r.in.Unread, explain.Unread{What: what, Text: text})
	slices.SortFunc(r.in.Unread, func(a, b explain.Unread) int { return strings.Compare(a.Text, b.Text) })
}

// pages calls each with list, page by page.
func pages[L client.ObjectList](ctx context.Context, hub client.Reader, list L, each func(L), opts ...client.ListOption) error {
	for next := ""; ; {
		page := list.DeepCopyObject().(L)
		if err := hub.List(ctx, page, append(slices.Clone(opts), client.Limit(pageSize), client.Continue(next))...); err != nil {
			return err
		}
		each(page)
		if next = page.GetContinue(); next == "" {
			return nil
		}
	}
}
