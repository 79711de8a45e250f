package receiver

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	notificationv1 "github.com/fluxcd/notification-controller/api/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flotilla-io/flotilla/internal/loop"
	"github.com/flotilla-io/flotilla/policies/expression"
	"github.com/flotilla-io/flotilla/policies/webhook"
	"github.com/flotilla-io/flotilla/sources/fetching"
)

// Reasons of conditions that Flux does not have, and one that it does not export.
const (
	// ReasonNotListening means that the control plane listens for no requests.
	ReasonNotListening = "NotListening"
	// ReasonPathTaken means that another Receiver has the same path.
	ReasonPathTaken = "PathTaken"
	// ReasonInvalidExpression means that a filter or a validation is no expression.
	ReasonInvalidExpression = "InvalidCELExpression"
)

// state is what the phases of a reconcile have found out about one Receiver.
type state struct {
	object *notificationv1.Receiver
	// path is where its requests come in; empty until it is known.
	path    string
	filters filters
	checks  map[string]checks // by issuer
	left    left
}

// filters are the compiled expressions of a Receiver.
type filters struct {
	// all is for each resource, and each those of single ones, by their place; nil for none.
	all  *expression.Expression
	each []*expression.Expression
}

// checks are the compiled expressions for the tokens of an issuer.
type checks struct {
	audience    string
	variables   []variable
	validations []validation
}

type variable struct {
	name string
	line *expression.Expression
}

type validation struct {
	message string
	line    *expression.Expression
}

// read bounds what it takes to read all expressions of a Receiver: some 100,000 characters.
const read = 5_000_000

// compile reads the expressions of the spec.
func (r *Reconciler) compile(ctx context.Context, s *state) (loop.Next, error) {
	spec := s.object.Spec
	sees := []string{"res", "req"}
	if spec.Type == notificationv1.GenericOIDCReceiver {
		sees = append(sees, "claims")
	}
	budget := expression.NewBudget(read)
	var err error
	if s.filters.all, err = r.line(ctx, budget, "spec.resourceFilter", spec.ResourceFilter, sees...); err != nil {
		return loop.Next{}, err
	}
	for i, resource := range spec.Resources {
		line, err := r.line(ctx, budget, fmt.Sprintf("spec.resources[%d].filter", i), resource.Filter, sees...)
		if err != nil {
			return loop.Next{}, err
		}
		s.filters.each = append(s.filters.each, line)
	}
	s.checks = make(map[string]checks, len(spec.OIDCProviders))
	for i, provider := range spec.OIDCProviders {
		if s.checks[provider.IssuerURL], err = r.checks(ctx, budget, fmt.Sprintf("spec.oidcProviders[%d]", i), provider); err != nil {
			return loop.Next{}, err
		}
	}
	return loop.Next{}, nil
}

func (r *Reconciler) checks(ctx context.Context, budget *expression.Budget, field string, of notificationv1.OIDCProvider) (checks, error) {
	out := checks{audience: of.GetAudience()}
	for i, v := range of.Variables {
		line, err := r.line(ctx, budget, fmt.Sprintf("%s.variables[%d].expression", field, i), v.Expression, "claims", "vars")
		if err != nil {
			return checks{}, err
		}
		out.variables = append(out.variables, variable{v.Name, line})
	}
	for i, v := range of.Validations {
		line, err := r.line(ctx, budget, fmt.Sprintf("%s.validations[%d].expression", field, i), v.Expression, "claims", "vars")
		if err != nil {
			return checks{}, err
		}
		out.validations = append(out.validations, validation{v.Message, line})
	}
	return out, nil
}

// line compiles one expression; nil for none.
func (r *Reconciler) line(ctx context.Context, budget *expression.Budget, field, text string, sees ...string) (*expression.Expression, error) {
	if strings.TrimSpace(text) == "" {
		return nil, nil
	}
	line, err := r.lines.Compile(ctx, text, budget, sees...)
	if errors.Is(err, expression.ErrInvalid) || errors.Is(err, expression.ErrCost) {
		return nil, loop.Stalled(ReasonInvalidExpression, fmt.Errorf("%s: %w", field, err))
	}
	return line, err
}

// authenticate reads the token, of which the address is made.
func (r *Reconciler) authenticate(ctx context.Context, s *state) (loop.Next, error) {
	token, err := tokenOf(ctx, r.hub, s.object)
	if err != nil {
		return loop.Next{}, err
	}
	s.path = s.object.GetWebhookPath(token["token"])
	return loop.Next{}, nil
}

// tokenOf returns what the Secret of a Receiver has; nil for a type that needs none.
func tokenOf(ctx context.Context, hub client.Reader, of *notificationv1.Receiver) (map[string]string, error) {
	if of.Spec.SecretRef == nil {
		return nil, checkSecret(of)
	}
	key := client.ObjectKey{Namespace: of.Namespace, Name: of.Spec.SecretRef.Name}
	var secret corev1.Secret
	err := hub.Get(ctx, key, &secret)
	switch {
	case apierrors.IsNotFound(err):
		return nil, loop.Waiting(notificationv1.TokenNotFoundReason, fetching.Awaited, fmt.Errorf("the Secret %s of spec.secretRef is not there: create it, with the key token", key))
	case err != nil:
		return nil, loop.Retry(notificationv1.TokenNotFoundReason, fmt.Errorf("read Secret %s: %w", key, err))
	}
	keys := []string{"token"}
	if of.Spec.Type == notificationv1.GCRReceiver {
		keys = append(keys, "email", "audience")
	}
	out := map[string]string{}
	for _, name := range keys {
		if out[name] = string(secret.Data[name]); out[name] == "" {
			return nil, loop.Waiting(notificationv1.TokenNotFoundReason, fetching.Awaited, fmt.Errorf("the Secret %s of spec.secretRef has no %s: add that key", key, name))
		}
	}
	return out, nil
}

// listen refuses where nobody would hear.
func (r *Reconciler) listen(context.Context, *state) (loop.Next, error) {
	if r.opts.Address == "" {
		return loop.Next{}, loop.Stalled(ReasonNotListening, errors.New("the control plane listens for no webhooks: start it with --receiver-address, such as :9292"))
	}
	return loop.Next{}, nil
}

// open makes the Receiver reachable. Its path is made of token, name and namespace, one after the other, so that it may be
// that of another one, whose token is the same.
func (r *Reconciler) open(_ context.Context, s *state) (loop.Next, error) {
	if !r.hooks.put(s.path, s.hook()) {
		return loop.Next{}, loop.Waiting(ReasonPathTaken, fetching.Awaited, errors.New("another Receiver has the same path, as its token, name and namespace are the same text: use another token or name"))
	}
	return loop.Next{}, nil
}

// hook returns what the server has to know.
func (s *state) hook() hook {
	return hook{key: client.ObjectKeyFromObject(s.object), uid: s.object.UID, generation: s.object.Generation, filters: s.filters, checks: s.checks}
}

// left are objects that the spec names, such as "HelmRepository/podinfo", and that nobody looks at.
type left struct {
	unserved []string // their kind is not served
	foreign  []string // they are of another namespace, which is not allowed
	missing  []string // they do not exist
}

// look finds out what of the spec nobody looks at.
func (r *Reconciler) look(ctx context.Context, s *state) (loop.Next, error) {
	for _, ref := range s.object.Spec.Resources {
		key, name := keyOf(s.object, ref), ref.Kind+"/"+ref.Name
		if key.Namespace != s.object.Namespace {
			name = ref.Kind + "/" + key.String()
		}
		k, served := kinds[ref.Kind]
		switch {
		case !served:
			s.left.unserved = append(s.left.unserved, name)
		case key.Namespace != s.object.Namespace && !r.opts.AllowCrossNamespace:
			s.left.foreign = append(s.left.foreign, name)
		case ref.Name != every:
			err := r.hub.Get(ctx, key, k.object())
			if client.IgnoreNotFound(err) != nil {
				return loop.Next{}, fmt.Errorf("read %s: %w", name, err)
			}
			if err != nil {
				s.left.missing = append(s.left.missing, name)
			}
		}
	}
	return loop.Next{}, nil
}

// String names what nobody looks at, and why; empty for nothing.
func (l left) String() string {
	out := ""
	for _, part := range []struct {
		names []string
		why   string
	}{
		{l.unserved, ": such kinds are not served yet"},
		{l.missing, ", which %s not exist"},
		{l.foreign, ": to look into other namespaces an administrator starts the control plane with --allow-cross-namespace-references"},
	} {
		names := slices.Compact(slices.Sorted(slices.Values(part.names)))
		if len(names) == 0 {
			continue
		}
		do := "does"
		if len(names) > 1 {
			do = "do"
		}
		out += "; nobody looks at " + strings.Join(names, ", ") + strings.Replace(part.why, "%s", do, 1)
	}
	return out
}

// message is that of a Receiver that is ready.
func (s *state) message() string {
	out := "Receiver initialized for path: " + s.path + s.left.String()
	if webhook.Open(s.object.Spec.Type) {
		out += "; requests of this type are not signed: keep the path secret"
	}
	return out
}
