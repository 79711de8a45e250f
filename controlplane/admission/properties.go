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

// Admit has what an agent says of the place of its cluster count once an
// administrator has declared it: by the token that it was registered with, or on the
// Cluster. Until then it is noted there. Karmada's agents say it at each start.
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
		return nil // it is refused
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

// applyAs has templates applied in a new cluster as who applied them, unless it says
// otherwise. Clusters that are there keep what they say: rights that were never needed
// may be missing. What says nothing is refused: it would stand for all rights.
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

// approved is what an administrator declared of a new cluster by its token, and that
// templates are applied there as who applied them, unless the token says otherwise, or
// the agent is Karmada's: those do not say the id of their cluster when they register.
func (p *Agents) approved(ctx context.Context, cluster string) (identity.Properties, error) {
	declared := identity.Properties{}
	registered, err := p.registration(ctx, cluster)
	if err == nil && registered != nil {
		declared, err = identity.ParseProperties(registered.GetAnnotations()[identity.PropertiesAnnotation])
	}
	if p.karmadas && registered != nil && registered.GetAnnotations()[identity.ClusterIDAnnotation] == "" {
		declared.ApplyAs = cmp.Or(declared.ApplyAs, clusterv1alpha1.ApplyAsHub) // Karmada's agent knows no other way
	}
	declared.ApplyAs = cmp.Or(declared.ApplyAs, clusterv1alpha1.ApplyAsAuthor)
	return declared, err
}

// noted is what only the agent has declared of its cluster.
func noted(c *clusterv1alpha1.Cluster) identity.Properties {
	out, err := identity.ParseProperties(c.Annotations[identity.RequestedAnnotation])
	if err != nil {
		return identity.Properties{}
	}
	return out
}

// note writes on a cluster what of asked it is not.
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
