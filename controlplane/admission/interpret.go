package admission

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/authorization/authorizer"

	configv1alpha1 "github.com/flotilla-io/flotilla/api/config/v1alpha1"
	"github.com/flotilla-io/flotilla/policies/validate"
)

// verbInterpret is the verb that a user needs on a resource to decide how it is
// interpreted, which affects all clusters and all namespaces.
const verbInterpret = "interpret"

// SetAuthorizer implements initializer.WantsAuthorizer.
func (p *Plugin) SetAuthorizer(a authorizer.Authorizer) { p.authorizer = a }

// mayInterpret refuses an object that decides how resources are interpreted, unless the
// user has the verb interpret on all resources that it concerns and concerned before. An
// edit that changes nothing of that needs no such right.
func (p *Plugin) mayInterpret(ctx context.Context, a admission.Attributes, k validate.Kind, obj, old *unstructured.Unstructured) error {
	interpreted, targets, err := meanings(k, obj)
	if err != nil || interpreted == nil {
		return err
	}
	if old != nil {
		before, more, err := meanings(k, old)
		switch {
		case err != nil:
			more = everything() // it is not known what it concerned
		case equality.Semantic.DeepEqual(interpreted, before):
			return nil
		}
		targets = append(targets, more...)
	}
	sought := map[schema.GroupResource]bool{}
	for _, target := range targets {
		sought[resourceOf(&p.apis, target)] = true
	}
	for _, resource := range slices.SortedFunc(maps.Keys(sought), func(a, b schema.GroupResource) int {
		return strings.Compare(a.String(), b.String())
	}) {
		if err := p.allows(ctx, a, resource); err != nil {
			return err
		}
	}
	return nil
}

// allows refuses the request if its user may not interpret a resource.
func (p *Plugin) allows(ctx context.Context, a admission.Attributes, resource schema.GroupResource) error {
	if p.authorizer == nil {
		return apierrors.NewInternalError(errors.New("nobody says who may interpret resources"))
	}
	decision, _, err := p.authorizer.Authorize(ctx, authorizer.AttributesRecord{
		User: a.GetUserInfo(), Verb: verbInterpret, APIGroup: resource.Group, APIVersion: "*", Resource: resource.Resource, ResourceRequest: true,
	})
	switch {
	case decision == authorizer.DecisionAllow:
		return nil
	case err != nil && decision != authorizer.DecisionDeny:
		return apierrors.NewInternalError(fmt.Errorf("find out who may interpret %s: %w", resource, err))
	default:
		return apierrors.NewForbidden(a.GetResource().GroupResource(), a.GetName(), fmt.Errorf(
			"it decides what %s mean in all clusters: that takes the verb %q on them, granted by a ClusterRole", resource, verbInterpret))
	}
}

// meanings returns how an object interprets resources, and the kinds that it concerns, with
// "*" for all. interpreted is nil if the object is of another kind.
func meanings(k validate.Kind, obj *unstructured.Unstructured) (interpreted any, targets []schema.GroupVersionKind, err error) {
	value, err := decode(k, obj)
	if err != nil {
		return nil, nil, apierrors.NewBadRequest(err.Error())
	}
	switch o := value.(type) {
	case *configv1alpha1.ResourceInterpreterCustomization:
		t := o.Spec.Target
		return o.Spec, []schema.GroupVersionKind{schema.FromAPIVersionAndKind(t.APIVersion, t.Kind)}, nil
	case *configv1alpha1.ResourceInterpreterWebhookConfiguration:
		for i := range o.Webhooks {
			for _, r := range o.Webhooks[i].Rules {
				if targets = append(targets, named(r.Rule)...); len(targets) > maxTargets {
					return o.Webhooks, everything(), nil
				}
			}
		}
		return o.Webhooks, targets, nil
	default:
		return nil, nil, nil
	}
}

// maxTargets is how many kinds are looked up one by one. A user who names more needs the
// right on all resources.
const maxTargets = 256

func everything() []schema.GroupVersionKind {
	return []schema.GroupVersionKind{{Group: "*", Version: "*", Kind: "*"}}
}

// named returns the kinds that a rule names.
func named(r configv1alpha1.Rule) []schema.GroupVersionKind {
	if len(r.APIGroups) > maxTargets || len(r.Kinds) > maxTargets || len(r.APIGroups)*len(r.Kinds) > maxTargets {
		return everything()
	}
	version := "*"
	if len(r.APIVersions) == 1 {
		version = r.APIVersions[0]
	}
	var out []schema.GroupVersionKind
	for _, group := range r.APIGroups {
		for _, kind := range r.Kinds {
			out = append(out, schema.GroupVersionKind{Group: group, Version: version, Kind: kind})
		}
	}
	return out
}

// resourceOf returns the resource of a kind, or a guess by the usual plural if the kind is
// not served yet.
func resourceOf(apis meta.RESTMapper, gvk schema.GroupVersionKind) schema.GroupResource {
	if gvk.Kind == "*" || gvk.Group == "*" {
		out := schema.GroupResource{Group: gvk.Group, Resource: "*"}
		if gvk.Kind != "*" {
			guess, _ := meta.UnsafeGuessKindToResource(gvk)
			out.Resource = guess.Resource
		}
		return out
	}
	var versions []string
	if gvk.Version != "*" {
		versions = append(versions, gvk.Version)
	}
	if mapping, err := apis.RESTMapping(gvk.GroupKind(), versions...); err == nil && mapping != nil {
		return mapping.Resource.GroupResource()
	}
	guess, _ := meta.UnsafeGuessKindToResource(gvk)
	return guess.GroupResource()
}
