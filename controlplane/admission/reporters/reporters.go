package reporters

import (
	"context"
	"fmt"
	"strings"
	"unicode"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/authentication/user"

	owners "github.com/flotilla-io/flotilla/controlplane/admission"
	"github.com/flotilla-io/flotilla/internal/registration/identity"
)

const (
	// ControlPlane is the component that the loops report as.
	ControlPlane = "flotilla"
	// Agent is the component that the agents of clusters report as.
	Agent = "flotilla-agent"
)

// Reporters refuses Events in a name that is not the writer's: whoever may write Events
// in a namespace could have the control plane say there what is not so.
type Reporters struct{ *admission.Handler }

var _ admission.ValidationInterface = Reporters{}

// New returns the plugin.
func New() Reporters {
	return Reporters{admission.NewHandler(admission.Create, admission.Update)}
}

// Validate implements admission.ValidationInterface. An Event that was reported by the
// control plane is changed by nobody else either.
func (Reporters) Validate(_ context.Context, a admission.Attributes, o admission.ObjectInterfaces) error {
	if a.GetKind().Kind != "Event" || a.GetResource().Resource != "events" || owners.MayBringIdentity(a.GetUserInfo()) {
		return nil
	}
	for _, obj := range []runtime.Object{a.GetObject(), a.GetOldObject()} {
		if obj == nil {
			continue
		}
		var event corev1.Event
		if err := o.GetObjectConvertor().Convert(obj, &event, nil); err != nil {
			return apierrors.NewInternalError(fmt.Errorf("read what is written: %w", err))
		}
		for field, name := range map[string]string{"source.component": event.Source.Component, "reportingComponent": event.ReportingController} {
			if !mayReportAs(a.GetUserInfo(), name) {
				return admission.NewForbidden(a, fmt.Errorf("%s: %q is, or looks like, a name by which the control plane reports: take another name, of ASCII alone", field, name))
			}
		}
	}
	return nil
}

// mayReportAs reports whether who is not the control plane may report by a name: by none that
// people would take for the control plane's, or for one of a part of it.
func mayReportAs(who user.Info, name string) bool {
	if name == Agent {
		_, agent := identity.ClusterOfAgent(who.GetName())
		return agent
	}
	return !strings.ContainsFunc(name, foreign) && !strings.HasPrefix(skeleton(name), skeleton(ControlPlane))
}

// foreign reports whether a rune is none of ASCII: there are letters among those that look
// like others, and much that nobody sees. The names of Kubernetes' newer Events have none.
func foreign(r rune) bool { return r > unicode.MaxASCII }

// alike makes one of what looks alike.
var alike = strings.NewReplacer("i", "l", "1", "l", "|", "l", "0", "o")

// skeleton returns what people see in a name of ASCII, in any font, and wherever it is
// printed without what a terminal would obey, or blanks.
func skeleton(name string) string {
	seen := strings.Map(func(r rune) rune {
		if r == ' ' || unicode.IsControl(r) {
			return -1
		}
		return r
	}, name)
	return alike.Replace(strings.ToLower(seen))
}
