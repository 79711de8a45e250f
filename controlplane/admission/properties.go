package admission

import (
	"cmp"
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/warning"

	clusterv1alpha1 "github.com/flotilla-io/flotilla/api/cluster/v1alpha1"
	"github.com/flotilla-io/flotilla/internal/registration/identity"
)

// Admit accepts the provider, region and zones that an agent declares for its cluster only
// once an administrator has declared them, with the registration token or on the Cluster.
// Until then they are recorded in an annotation. Karmada's agents declare them at each
// start.
func (p *Agents) Admit(ctx context.Context, a admission.Attributes, o admission.ObjectInterfaces) error {
	if p.karmadas && a.GetResource().GroupResource() == requests && a.GetUserInfo() != nil {
		return shorten(ctx, agentWrite{a, o})
	}
	obj, ok := a.GetObject().(*clusterv1alpha1.Cluster)
	if !ok || a.GetSubresource() != "" || a.GetUserInfo() == nil {
		return nil
	}
	old, _ := a.GetOldObject().(*clusterv1alpha1.Cluster)
	cluster, agent := identity.ClusterOfAgent(a.GetUserInfo().GetName())
	if !agent {
		note(obj, noted(obj))
		return applyAs(obj, old)
	}
	if cluster != obj.Name {
		return nil // Validate refuses it
	}
	stands := identity.Properties{}
	var asked identity.Properties
	if old != nil {
		stands, asked = identity.PlaceOf(old), noted(old)
	}
	declared := identity.PlaceOf(obj)
	if old == nil {
		approved, err := p.approved(ctx, cluster)
		if err != nil {
			return apierrors.NewInternalError(err)
		}
		approved.Give(obj)
		stands = identity.Properties{Provider: approved.Provider, Region: approved.Region, Zones: approved.Zones}
	}
	stands.Locate(obj)
	added := stands.Beyond(declared, false)
	note(obj, asked.Beyond(added, true))
	if !added.IsZero() {
		warning.AddWarning(ctx, "", fmt.Sprintf("%s of the cluster %s counts once an administrator of the control plane has said it: flotilla patch cluster %s --type merge -p '%s'",
			added.Words(), cluster, cluster, added.Patch()))
	}
	return nil
}

// applyAs sets the annotation of a new Cluster, unless it has one, so that templates are
// applied there with the identity of their authors. Existing Clusters keep what they have:
// rights that were never needed may be missing. Any other value is refused, as it would
// amount to all rights.
func applyAs(obj, old *clusterv1alpha1.Cluster) error {
	says := obj.Annotations[clusterv1alpha1.ApplyAsAnnotation]
	switch {
	case old != nil && old.Annotations[clusterv1alpha1.ApplyAsAnnotation] == says:
	case says == "" && old == nil:
		metav1.SetMetaDataAnnotation(&obj.ObjectMeta, clusterv1alpha1.ApplyAsAnnotation, clusterv1alpha1.ApplyAsAuthor)
	case says != "" && says != clusterv1alpha1.ApplyAsAuthor && says != clusterv1alpha1.ApplyAsHub:
		return apierrors.NewBadRequest(fmt.Sprintf("metadata.annotations.%s: %q does not say as whom templates are applied: it is %s or %s",
			clusterv1alpha1.ApplyAsAnnotation, says, clusterv1alpha1.ApplyAsAuthor, clusterv1alpha1.ApplyAsHub))
	}
	return nil
}

// approved returns the properties that an administrator declared for a new cluster with its
// token. ApplyAs defaults to the author, or to the control plane if the agent is Karmada's:
// those do not send the id of their cluster when they register.
func (p *Agents) approved(ctx context.Context, cluster string) (identity.Properties, error) {
	declared := identity.Properties{}
	registered, err := p.registration(ctx, cluster)
	if err == nil && registered != nil {
		declared, err = identity.ParseProperties(registered.GetAnnotations()[identity.PropertiesAnnotation])
	}
	if p.karmadas && registered != nil && registered.GetAnnotations()[identity.ClusterIDAnnotation] == "" {
		declared.ApplyAs = cmp.Or(declared.ApplyAs, clusterv1alpha1.ApplyAsHub) // all that Karmada's agent supports
	}
	declared.ApplyAs = cmp.Or(declared.ApplyAs, clusterv1alpha1.ApplyAsAuthor)
	return declared, err
}

// noted returns the properties that only the agent has declared; zero if the annotation
// cannot be read.
func noted(c *clusterv1alpha1.Cluster) identity.Properties {
	out, err := identity.ParseProperties(c.Annotations[identity.RequestedAnnotation])
	if err != nil {
		return identity.Properties{}
	}
	return out
}

// note records in the annotation of a cluster those of the asked properties that the
// cluster does not have, and removes the annotation if there are none.
func note(c *clusterv1alpha1.Cluster, asked identity.Properties) {
	stands := identity.PlaceOf(c)
	left := stands.Beyond(asked, false)
	text := left.String()
	switch {
	case text == c.Annotations[identity.RequestedAnnotation]:
	case text == "":
		delete(c.Annotations, identity.RequestedAnnotation)
	case c.Annotations == nil:
		c.Annotations = map[string]string{identity.RequestedAnnotation: text}
	default:
		c.Annotations[identity.RequestedAnnotation] = text
	}
}
