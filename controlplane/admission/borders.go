package admission

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"

	clusterv1alpha1 "github.com/flotilla-io/flotilla/api/cluster/v1alpha1"
	workv1alpha1 "github.com/flotilla-io/flotilla/api/work/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/internal/registration/identity"
	"github.com/flotilla-io/flotilla/policies/access"
)

// Borders lets a binding refer only to templates in its own namespace. It also reserves
// the fields that loops maintain on bindings, and the Works that bring rights to members,
// for the loops. Without it, a user who may write bindings in one namespace could have
// any object of the control plane sent to members, Secrets of others among them.
type Borders struct {
	*admission.Handler
	// authorizer decides who may write bindings in all namespaces.
	authorizer authorizer.Authorizer
}

var (
	_ admission.ValidationInterface     = (*Borders)(nil)
	_ admission.InitializationValidator = (*Borders)(nil)
)

// NewBorders returns the plugin.
func NewBorders() *Borders {
	return &Borders{Handler: admission.NewHandler(admission.Create, admission.Update)}
}

// SetAuthorizer implements initializer.WantsAuthorizer.
func (p *Borders) SetAuthorizer(a authorizer.Authorizer) { p.authorizer = a }

// ValidateInitialization is called when the server is built.
func (p *Borders) ValidateInitialization() error {
	if p.authorizer == nil {
		return errors.New("no authorizer")
	}
	return nil
}

// Validate refuses a binding of a template in another namespace, unless the user may write
// any object. It refuses changes to what loops maintain on a binding, unless the user may
// write the bindings of all namespaces.
func (p *Borders) Validate(ctx context.Context, a admission.Attributes, _ admission.ObjectInterfaces) error {
	if work, ok := a.GetObject().(*workv1alpha1.Work); ok {
		return ownWork(a, work)
	}
	b, ok := a.GetObject().(*workv1alpha2.ResourceBinding)
	if !ok || a.GetSubresource() != "" || MayBringIdentity(a.GetUserInfo()) {
		return nil
	}
	old, _ := a.GetOldObject().(*workv1alpha2.ResourceBinding)
	ref := &b.Spec.Resource
	if ref.Namespace != b.Namespace && (old == nil || !sameTemplate(&old.Spec.Resource, ref)) {
		return admission.NewForbidden(a, fmt.Errorf("spec.resource.namespace: it is %q, a binding is of a template in its own namespace, %s", ref.Namespace, b.Namespace))
	}
	if old == nil {
		old = &workv1alpha2.ResourceBinding{}
	}
	kept := keptBy(old, b)
	if kept == "" || p.everywhere(ctx, a.GetUserInfo()) {
		return nil
	}
	return admission.NewForbidden(a, fmt.Errorf("%s: the control plane keeps it, and reads it back; who may update the ResourceBindings of all namespaces may change it", kept))
}

// ownWork refuses, except for administrators, changes to the control plane's own Works,
// which a Cluster owns, and new Works that bring rights. Without its labels, owner or
// finalizer such a Work would not be found when the rights are withdrawn, or would be
// left behind. Agents may change only the finalizer: see Agents.
func ownWork(a admission.Attributes, work *workv1alpha1.Work) error {
	_, own := access.Copied(work)
	if old, ok := a.GetOldObject().(*workv1alpha1.Work); ok && !own {
		owner := metav1.GetControllerOfNoCopy(old)
		_, own = access.Copied(old)
		own = own || owner != nil && owner.Kind == clusterv1alpha1.ResourceKindCluster && owner.APIVersion == clusterv1alpha1.GroupVersion.String()
	}
	who := a.GetUserInfo()
	if !own || a.GetSubresource() != "" || MayBringIdentity(who) {
		return nil
	}
	if _, agent := identity.ClusterOfAgent(who.GetName()); agent {
		return nil
	}
	return admission.NewForbidden(a, errors.New("it brings to a member what users may do there, as the control plane says: change the roles and bindings here that it stands for"))
}

// keptBy returns the first field that loops maintain and in which two bindings differ;
// empty if there is none. It skips the permanent id, which the plugin FlotillaKinds checks.
func keptBy(old, b *workv1alpha2.ResourceBinding) string {
	if !apiequality.Semantic.DeepEqual(old.Spec.RequiredBy, b.Spec.RequiredBy) {
		return "spec.requiredBy"
	}
	if key := changedKey(old.Labels, b.Labels, workv1alpha2.ResourceBindingPermanentIDLabel); key != "" {
		return "metadata.labels." + key
	}
	if key := changedKey(old.Annotations, b.Annotations); key != "" {
		return "metadata.annotations." + key
	}
	return ""
}

// changedKey returns the first of the control plane's own keys whose value differs between
// two maps, without the keys in may; empty if there is none.
func changedKey(old, now map[string]string, may ...string) string {
	var out []string
	for _, m := range []map[string]string{old, now} {
		for key := range m {
			was, had := old[key]
			is, has := now[key]
			if (had != has || was != is) && ownKey(key) && !slices.Contains(may, key) {
				out = append(out, key)
			}
		}
	}
	if len(out) == 0 {
		return ""
	}
	return slices.Min(out)
}

// ownKey reports whether the key of a label or annotation is in a domain of the control
// plane.
func ownKey(key string) bool {
	domain, _, _ := strings.Cut(key, "/")
	for _, own := range []string{"karmada.io", "flotilla.io"} {
		if domain == own || strings.HasSuffix(domain, "."+own) {
			return true
		}
	}
	return false
}

// everywhere reports whether a user may write the bindings of all namespaces.
func (p *Borders) everywhere(ctx context.Context, who user.Info) bool {
	if p.authorizer == nil {
		return false
	}
	decision, _, _ := p.authorizer.Authorize(ctx, authorizer.AttributesRecord{
		User: who, Verb: "update", APIGroup: workv1alpha2.GroupName, APIVersion: "*", Resource: "resourcebindings", ResourceRequest: true,
	})
	return decision == authorizer.DecisionAllow
}

func sameTemplate(a, b *workv1alpha2.ObjectReference) bool {
	return a.APIVersion == b.APIVersion && a.Kind == b.Kind && a.Namespace == b.Namespace && a.Name == b.Name
}
