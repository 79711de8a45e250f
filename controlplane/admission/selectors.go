package admission

import (
	"context"
	"errors"
	"fmt"

	rbacv1 "k8s.io/api/rbac/v1"
	definitions "k8s.io/apiextensions-apiserver/pkg/client/listers/apiextensions/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/authorization/authorizer"

	policyv1alpha1 "github.com/flotilla-io/flotilla/api/policy/v1alpha1"
)

// Selectors lets a user write policies and overrides in a namespace only if he may write
// the objects that they select. A policy propagates, moves and removes objects with all
// the rights of the control plane, and an override changes them. Without this check, a
// user who may write policies could control the templates of others in the namespace.
type Selectors struct {
	*admission.Handler
	apis       byDefinition
	authorizer authorizer.Authorizer
}

var (
	_ admission.ValidationInterface     = (*Selectors)(nil)
	_ admission.InitializationValidator = (*Selectors)(nil)
)

// NewSelectors returns the plugin.
func NewSelectors() *Selectors {
	return &Selectors{Handler: admission.NewHandler(admission.Create, admission.Update, admission.Delete)}
}

// SetRESTMapper implements initializer.WantsRESTMapper.
func (p *Selectors) SetRESTMapper(mapper meta.RESTMapper) { p.apis.RESTMapper = mapper }

// SetDefinitions implements apiserver.WantsDefinitions.
func (p *Selectors) SetDefinitions(all definitions.CustomResourceDefinitionLister) {
	p.apis.definitions = all
}

// SetAuthorizer implements initializer.WantsAuthorizer.
func (p *Selectors) SetAuthorizer(a authorizer.Authorizer) { p.authorizer = a }

// ValidateInitialization is called when the server is built.
func (p *Selectors) ValidateInitialization() error {
	switch {
	case p.apis.RESTMapper == nil:
		return errors.New("no list of served APIs")
	case p.authorizer == nil:
		return errors.New("no authorizer")
	}
	return nil
}

// Validate refuses to create, change or delete a policy or an override in a namespace,
// unless the user may write all that it selects and selected before. That includes changes
// of its metadata: loops depend on labels and annotations, the garbage collector on owners.
func (p *Selectors) Validate(ctx context.Context, a admission.Attributes, _ admission.ObjectInterfaces) error {
	if !selects(a.GetKind().GroupKind()) || a.GetSubresource() != "" || MayBringIdentity(a.GetUserInfo()) {
		return nil
	}
	now, before := stateOf(a.GetObject()), stateOf(a.GetOldObject())
	if now != nil && before != nil && same(before, now) {
		return nil
	}
	asked := inquiry{plugin: p, attributes: a, rights: map[right]bool{}}
	for _, state := range []*unstructured.Unstructured{now, before} {
		if state == nil {
			continue
		}
		asked.there = state == before
		if err := asked.all(ctx, selectedBy(state)); err != nil {
			return admission.NewForbidden(a, err)
		}
	}
	return nil
}

// selects reports whether objects of a kind are namespaced and select templates.
func selects(kind schema.GroupKind) bool {
	return kind.Group == policyv1alpha1.GroupName &&
		(kind.Kind == policyv1alpha1.ResourceKindPropagationPolicy || kind.Kind == policyv1alpha1.ResourceKindOverridePolicy)
}

// same reports whether an update leaves a policy or an override unchanged, its finalizers and
// owners included: the garbage collector deletes it after its owner.
func same(before, now *unstructured.Unstructured) bool {
	return sameContent(before, now) && apiequality.Semantic.DeepEqual(before.GetOwnerReferences(), now.GetOwnerReferences()) &&
		apiequality.Semantic.DeepEqual(before.GetFinalizers(), now.GetFinalizers())
}

func stateOf(obj runtime.Object) *unstructured.Unstructured {
	out, _ := obj.(*unstructured.Unstructured)
	return out
}

// anything selects all objects. It stands for selectors that cannot be read, and for those
// of an override that has none.
var anything = []policyv1alpha1.ResourceSelector{{APIVersion: "*/*", Kind: "*"}}

func selectedBy(obj *unstructured.Unstructured) []policyv1alpha1.ResourceSelector {
	var read struct {
		Spec struct {
			ResourceSelectors []policyv1alpha1.ResourceSelector `json:"resourceSelectors"`
		} `json:"spec"`
	}
	err := runtime.DefaultUnstructuredConverter.FromUnstructured(map[string]any{"spec": obj.Object["spec"]}, &read)
	if err != nil || len(read.Spec.ResourceSelectors) == 0 && obj.GetKind() == policyv1alpha1.ResourceKindOverridePolicy {
		return anything
	}
	return read.Spec.ResourceSelectors
}

// right is a verb on an object of a resource, or on all of them if name is empty.
type right struct {
	verb     string
	resource schema.GroupResource
	name     string
}

// inquiry checks the rights for one request, each of them at most once.
type inquiry struct {
	plugin     *Selectors
	attributes admission.Attributes
	there      bool // the selectors are those of the old object
	rights     map[right]bool
}

// all returns an error that names the first right that the user lacks on what is selected;
// nil if he lacks none.
func (q *inquiry) all(ctx context.Context, selected []policyv1alpha1.ResourceSelector) error {
	for i, s := range selected {
		resource := resourceOf(&q.plugin.apis, schema.FromAPIVersionAndKind(s.APIVersion, s.Kind))
		if !q.may(ctx, "update", resource, s.Name) && !q.may(ctx, "patch", resource, s.Name) {
			return q.refusal(i, s, "update", resource)
		}
		if q.attributes.GetKind().Kind == policyv1alpha1.ResourceKindPropagationPolicy && !q.may(ctx, "delete", resource, s.Name) {
			return q.refusal(i, s, "delete", resource)
		}
		for _, given := range givenBy(resource) {
			if !q.may(ctx, given.verb, given.resource, "") {
				return q.refusal(i, s, given.verb, given.resource)
			}
		}
	}
	return nil
}

// givenBy returns the rights that are needed to grant rights that one does not have. A Role
// or binding was checked against the rights that its author has on the control plane, and
// may grant more than that in members.
func givenBy(resource schema.GroupResource) []right {
	roles := schema.GroupResource{Group: rbacv1.GroupName, Resource: "roles"}
	switch resource {
	case roles:
		return []right{{verb: "escalate", resource: roles}}
	case schema.GroupResource{Group: rbacv1.GroupName, Resource: "rolebindings"}:
		return []right{{verb: "bind", resource: roles}, {verb: "bind", resource: schema.GroupResource{Group: rbacv1.GroupName, Resource: "clusterroles"}}}
	}
	return nil
}

// may reports whether the user has a right in the namespace, on all objects or on the one.
func (q *inquiry) may(ctx context.Context, verb string, resource schema.GroupResource, name string) bool {
	asked := right{verb: verb, resource: resource}
	if q.has(ctx, asked) || name == "" {
		return q.rights[asked]
	}
	asked.name = name
	return q.has(ctx, asked)
}

func (q *inquiry) has(ctx context.Context, asked right) bool {
	if known, ok := q.rights[asked]; ok {
		return known
	}
	decision, _, _ := q.plugin.authorizer.Authorize(ctx, authorizer.AttributesRecord{
		User: q.attributes.GetUserInfo(), Verb: asked.verb, Namespace: q.attributes.GetNamespace(), Name: asked.name, ResourceRequest: true,
		APIGroup: asked.resource.Group, APIVersion: "*", Resource: asked.resource.Resource,
	})
	q.rights[asked] = decision == authorizer.DecisionAllow
	return q.rights[asked]
}

func (q *inquiry) refusal(i int, s policyv1alpha1.ResourceSelector, verb string, resource schema.GroupResource) error {
	a := q.attributes
	everything, advice := "name the kinds that are meant", "select what that user may write, and leave this to a policy or override that an administrator writes"
	if q.there {
		const leave = "an administrator has to change or remove it"
		everything, advice = leave, leave
	}
	if s.APIVersion == anything[0].APIVersion {
		return fmt.Errorf("spec.resourceSelectors: it means all that there is in namespace %s, and %q may not %s all of that: %s",
			a.GetNamespace(), a.GetUserInfo().GetName(), verb, everything)
	}
	what := resource.String()
	if s.Name != "" {
		what += fmt.Sprintf(" (%s %s)", s.Kind, s.Name)
	}
	return fmt.Errorf("spec.resourceSelectors[%d]: it means %s of %s, and %q may not %s %s in namespace %s: %s",
		i, s.Kind, s.APIVersion, a.GetUserInfo().GetName(), verb, what, a.GetNamespace(), advice)
}
