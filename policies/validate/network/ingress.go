package network

import (
	"net/netip"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	networkingv1alpha1 "github.com/flotilla-io/flotilla/api/networking/v1alpha1"
	"github.com/flotilla-io/flotilla/policies/validate/syntax"
)

// Ingress says what is wrong with i, as Kubernetes does with its Ingress.
func Ingress(i *networkingv1alpha1.MultiClusterIngress) (field.ErrorList, []string) {
	spec, at := &i.Spec, field.NewPath("spec")
	var errs field.ErrorList
	if len(spec.Rules) == 0 && spec.DefaultBackend == nil {
		errs = append(errs, field.Invalid(at, spec.Rules, "either defaultBackend or rules must be specified"))
	}
	if spec.DefaultBackend != nil {
		errs = append(errs, backend(spec.DefaultBackend, at.Child("defaultBackend"))...)
	}
	for n := range spec.Rules {
		errs = append(errs, ingressRule(&spec.Rules[n], at.Child("rules").Index(n))...)
	}
	for n := range spec.TLS {
		for h, name := range spec.TLS[n].Hosts {
			errs = append(errs, syntax.Host(name, at.Child("tls").Index(n).Child("hosts").Index(h))...)
		}
	}
	if class := spec.IngressClassName; class != nil {
		errs = append(errs, syntax.Subdomain(*class, at.Child("ingressClassName"))...)
	}
	return errs, nil
}

func ingressRule(r *networkingv1.IngressRule, at *field.Path) field.ErrorList {
	var errs field.ErrorList
	if r.Host != "" {
		if _, err := netip.ParseAddr(r.Host); err == nil {
			errs = append(errs, field.Invalid(at.Child("host"), r.Host, "must be a DNS name, not an IP address"))
		} else {
			errs = append(errs, syntax.Host(r.Host, at.Child("host"))...)
		}
	}
	if r.HTTP == nil {
		return errs
	}
	if len(r.HTTP.Paths) == 0 {
		errs = append(errs, field.Required(at.Child("http", "paths"), ""))
	}
	for n := range r.HTTP.Paths {
		p, path := &r.HTTP.Paths[n], at.Child("http", "paths").Index(n)
		errs = append(errs, httpPath(p, path)...)
		errs = append(errs, backend(&p.Backend, path.Child("backend"))...)
	}
	return errs
}

// pathTypes are the ways in which a path matches.
var pathTypes = []networkingv1.PathType{networkingv1.PathTypeExact, networkingv1.PathTypePrefix, networkingv1.PathTypeImplementationSpecific}

func httpPath(p *networkingv1.HTTPIngressPath, at *field.Path) field.ErrorList {
	if p.PathType == nil {
		return field.ErrorList{field.Required(at.Child("pathType"), "pathType must be specified")}
	}
	if !slices.Contains(pathTypes, *p.PathType) {
		return field.ErrorList{field.NotSupported(at.Child("pathType"), *p.PathType, pathTypes)}
	}
	at = at.Child("path")
	specific := *p.PathType == networkingv1.PathTypeImplementationSpecific
	if !strings.HasPrefix(p.Path, "/") && (!specific || p.Path != "") {
		return field.ErrorList{field.Invalid(at, p.Path, "must be an absolute path")}
	}
	if specific {
		return nil
	}
	var errs field.ErrorList
	for _, bad := range []string{"//", "/./", "/../", "%2f", "%2F"} {
		if strings.Contains(p.Path, bad) {
			errs = append(errs, field.Invalid(at, p.Path, "must not contain "+bad))
		}
	}
	for _, bad := range []string{"/..", "/."} {
		if strings.HasSuffix(p.Path, bad) {
			errs = append(errs, field.Invalid(at, p.Path, "must not end with "+bad))
		}
	}
	return errs
}

func backend(b *networkingv1.IngressBackend, at *field.Path) field.ErrorList {
	switch {
	case b.Service != nil && b.Resource != nil:
		return field.ErrorList{field.Invalid(at, "", "service and resource must not both be specified")}
	case b.Resource != nil:
		return resourceBackend(b.Resource, at.Child("resource"))
	case b.Service == nil:
		return field.ErrorList{field.Required(at, "a service or a resource is required")}
	}
	at = at.Child("service")
	errs := syntax.Label(b.Service.Name, at.Child("name"))
	port := b.Service.Port
	switch {
	case port.Name != "" && port.Number != 0:
		errs = append(errs, field.Invalid(at.Child("port"), port.Name, "name and number must not both be set"))
	case port.Name != "":
		errs = append(errs, syntax.PortName(port.Name, at.Child("port", "name"))...)
	case port.Number != 0:
		errs = append(errs, syntax.Port(port.Number, at.Child("port", "number"))...)
	default:
		errs = append(errs, field.Required(at.Child("port"), "port name or number is required"))
	}
	return errs
}

func resourceBackend(r *corev1.TypedLocalObjectReference, at *field.Path) field.ErrorList {
	var errs field.ErrorList
	if r.APIGroup != nil && *r.APIGroup != "" {
		errs = append(errs, syntax.Subdomain(*r.APIGroup, at.Child("apiGroup"))...)
	}
	errs = append(errs, syntax.Segment(r.Kind, at.Child("kind"))...)
	return append(errs, syntax.Segment(r.Name, at.Child("name"))...)
}
