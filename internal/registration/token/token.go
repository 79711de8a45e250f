package token

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	bootstrapapi "k8s.io/cluster-bootstrap/token/api"
	bootstraputil "k8s.io/cluster-bootstrap/token/util"
	"k8s.io/cluster-bootstrap/util/secrets"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "github.com/flotilla-io/flotilla/api/cluster/v1alpha1"
	"github.com/flotilla-io/flotilla/internal/registration/identity"
)

// ErrInvalid means that a token cannot be created with these options.
var ErrInvalid = errors.New("invalid")

const (
	// DefaultTTL is the lifetime of a token that any cluster may use.
	DefaultTTL = 24 * time.Hour
	// ClusterTTL is the lifetime of a token that one cluster may use, once.
	ClusterTTL = time.Hour
)

// Options are what a token is valid for. The zero value is for any new cluster,
// for DefaultTTL.
type Options struct {
	// Token is the token itself; empty generates one that nobody guesses.
	Token string
	// TTL is its lifetime; nil means the default, and zero that it does not
	// expire.
	TTL *time.Duration
	// Usages are "signing" and "authentication"; empty means both.
	Usages []string
	// Groups are those of the user whom it authenticates; empty means the one that
	// may register clusters.
	Groups []string
	// Description is for people.
	Description string
	// Cluster is the only cluster that it is valid for, once; empty means any.
	Cluster string
	// ClusterID is the UID of that cluster's kube-system namespace; empty means
	// the one that the control plane knows, or any.
	ClusterID string
	// Properties are declared about the cluster that registers by it, for policies
	// to select by. What an agent reports about itself counts only where it agrees
	// with them.
	Properties identity.Properties
}

// Info is the part of a token that is not secret.
type Info struct {
	// ID is the public part.
	ID string
	// Expires is when it ends; zero means never.
	Expires time.Time
	// Usages, Groups and Description are as in Options.
	Usages, Groups []string
	Description    string
	// Used means that it has been used, and is no longer valid.
	Used bool
}

// Create creates a token and returns it, with its Info. Errors: ErrInvalid, or
// the server's error.
func Create(ctx context.Context, hub client.Client, o Options) (string, Info, error) {
	if err := o.complete(ctx, hub); err != nil {
		return "", Info{}, err
	}
	secret := o.secret()
	// Its expiry is judged by the control plane's clock, so the present time is
	// taken from there.
	probe := secret.DeepCopy()
	if err := hub.Create(ctx, probe, client.DryRunAll); err != nil {
		return "", Info{}, o.explain(err)
	}
	if *o.TTL > 0 {
		secret.StringData[bootstrapapi.BootstrapTokenExpirationKey] = probe.CreationTimestamp.Add(*o.TTL).UTC().Format(time.RFC3339)
	}
	if err := hub.Create(ctx, secret); err != nil {
		return "", Info{}, o.explain(err)
	}
	return o.Token, info(secret), nil
}

func (o *Options) explain(err error) error {
	if apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("there is a token %s already: flotilla token delete %s removes it", o.id(), o.id())
	}
	return fmt.Errorf("make the token: %w", err)
}

func (o *Options) id() string {
	id, _, _ := strings.Cut(o.Token, ".")
	return id
}

// complete sets the defaults, and refuses options that cannot be.
func (o *Options) complete(ctx context.Context, hub client.Reader) error {
	if o.Token == "" {
		made, err := bootstraputil.GenerateBootstrapToken()
		if err != nil {
			return fmt.Errorf("make a token: %w", err)
		}
		o.Token = made
	}
	if !bootstraputil.IsValidBootstrapToken(o.Token) {
		return fmt.Errorf("the token is %w: it is 6 characters, a dot, and 16 characters, each a-z or 0-9", ErrInvalid)
	}
	if len(o.Usages) == 0 {
		o.Usages = slices.Clone(bootstrapapi.KnownTokenUsages)
	}
	if err := bootstraputil.ValidateUsages(o.Usages); err != nil {
		return fmt.Errorf("the usages are %w: they are %s", ErrInvalid, strings.Join(bootstrapapi.KnownTokenUsages, " and "))
	}
	if len(o.Groups) == 0 {
		o.Groups = []string{identity.TokensGroup}
	}
	if err := checkProperties(o.Properties); err != nil {
		return err
	}
	if err := o.bind(ctx, hub); err != nil {
		return err
	}
	for _, group := range o.Groups {
		if err := bootstraputil.ValidateBootstrapGroupName(group); err != nil {
			return fmt.Errorf("the group %q is %w: it begins with %s: and is made of a-z, 0-9, : and -", group, ErrInvalid, bootstrapapi.BootstrapDefaultGroup)
		}
	}
	switch {
	case o.TTL == nil && o.Cluster != "":
		o.TTL = ptrTo(ClusterTTL)
	case o.TTL == nil:
		o.TTL = ptrTo(DefaultTTL)
	case *o.TTL < 0:
		return fmt.Errorf("the time to live (--ttl) is %w: it is %s", ErrInvalid, *o.TTL)
	}
	return nil
}

func ptrTo(d time.Duration) *time.Duration { return &d }

// bind adds the groups that bind a token to one cluster.
func (o *Options) bind(ctx context.Context, hub client.Reader) error {
	if o.Cluster == "" {
		if o.ClusterID != "" {
			return fmt.Errorf("an id without a name is %w: name the cluster, too", ErrInvalid)
		}
		return nil
	}
	if !identity.IsClusterName(o.Cluster) {
		return fmt.Errorf("the name %q is %w: a cluster's has at most %d characters, each a-z, 0-9 or -, the first and last no -", o.Cluster, ErrInvalid, clusterv1alpha1.ClusterNameMaxLength)
	}
	if strings.HasSuffix(o.Cluster, identity.ImpersonatorSuffix) {
		return fmt.Errorf("the name %q is %w: a cluster's does not end with %s", o.Cluster, ErrInvalid, identity.ImpersonatorSuffix)
	}
	cluster := &clusterv1alpha1.Cluster{}
	err := hub.Get(ctx, client.ObjectKey{Name: o.Cluster}, cluster)
	switch {
	case client.IgnoreNotFound(err) != nil:
		return fmt.Errorf("read cluster %s: %w", o.Cluster, err)
	case err == nil && cluster.Spec.SyncMode == clusterv1alpha1.Push:
		return fmt.Errorf("the cluster %s is in push mode: flotilla unjoin %s removes it first", o.Cluster, o.Cluster)
	case err == nil && o.ClusterID != "" && cluster.Spec.ID != "" && !strings.EqualFold(cluster.Spec.ID, o.ClusterID):
		return fmt.Errorf("the name %s is taken by a cluster with the id %s: choose another name", o.Cluster, cluster.Spec.ID)
	case err == nil && o.ClusterID == "":
		o.ClusterID = cluster.Spec.ID // the same cluster, which registers again
	}
	o.Groups = append(slices.Clone(o.Groups), identity.ClusterGroup(o.Cluster))
	if o.ClusterID != "" {
		o.Groups = append(o.Groups, identity.IDGroup(o.ClusterID))
	}
	return nil
}

func (o *Options) secret() *corev1.Secret {
	id, private, _ := strings.Cut(o.Token, ".")
	data := map[string]string{
		bootstrapapi.BootstrapTokenIDKey:          id,
		bootstrapapi.BootstrapTokenSecretKey:      private,
		bootstrapapi.BootstrapTokenExtraGroupsKey: strings.Join(o.Groups, ","),
	}
	if o.Description != "" {
		data[bootstrapapi.BootstrapTokenDescriptionKey] = o.Description
	}
	for _, usage := range o.Usages {
		data[bootstrapapi.BootstrapTokenUsagePrefix+usage] = "true"
	}
	out := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceSystem, Name: bootstraputil.BootstrapTokenSecretName(id)},
		Type:       bootstrapapi.SecretTypeBootstrapToken,
		StringData: data,
	}
	if text := o.Properties.String(); text != "" {
		out.Annotations = map[string]string{identity.PropertiesAnnotation: text}
	}
	return out
}

// List returns all tokens, sorted by id.
func List(ctx context.Context, hub client.Reader) ([]Info, error) {
	all := &corev1.SecretList{}
	if err := hub.List(ctx, all, client.InNamespace(metav1.NamespaceSystem), client.MatchingFields{"type": string(bootstrapapi.SecretTypeBootstrapToken)}); err != nil {
		return nil, fmt.Errorf("list the tokens: %w", err)
	}
	out := make([]Info, 0, len(all.Items))
	for i := range all.Items {
		out = append(out, info(&all.Items[i]))
	}
	slices.SortFunc(out, func(a, b Info) int { return strings.Compare(a.ID, b.ID) })
	return out, nil
}

// info returns the Info of a token's Secret.
func info(secret *corev1.Secret) Info {
	data := func(key string) string { return secrets.GetData(secret, key) }
	out := Info{
		ID:          strings.TrimPrefix(secret.Name, bootstrapapi.BootstrapTokenSecretPrefix),
		Description: data(bootstrapapi.BootstrapTokenDescriptionKey),
		Used:        secret.Annotations[identity.UsedByAnnotation] != "",
	}
	if groups := data(bootstrapapi.BootstrapTokenExtraGroupsKey); groups != "" {
		out.Groups = strings.Split(groups, ",")
	}
	for _, usage := range slices.Sorted(slices.Values(bootstrapapi.KnownTokenUsages)) {
		if data(bootstrapapi.BootstrapTokenUsagePrefix+usage) == "true" {
			out.Usages = append(out.Usages, usage)
		}
	}
	if at, err := time.Parse(time.RFC3339, data(bootstrapapi.BootstrapTokenExpirationKey)); err == nil {
		out.Expires = at
	}
	return out
}

// Delete deletes a token by its id, or by the token itself, and returns its id.
// Errors: ErrInvalid, a NotFound error, or the server's error.
func Delete(ctx context.Context, hub client.Writer, token string) (id string, err error) {
	id = token
	if bootstraputil.IsValidBootstrapToken(token) {
		id, _, _ = strings.Cut(token, ".")
	}
	if !bootstraputil.IsValidBootstrapTokenID(id) {
		return "", fmt.Errorf("it is %w: give the 6 characters before the dot of a token, each a-z or 0-9", ErrInvalid)
	}
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceSystem, Name: bootstraputil.BootstrapTokenSecretName(id)}}
	if err := hub.Delete(ctx, secret); err != nil {
		return id, fmt.Errorf("delete the token %s: %w", id, err)
	}
	return id, nil
}
