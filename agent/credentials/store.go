package credentials

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flotilla-io/flotilla/internal/durable"
)

// File keeps the kubeconfig in a file that its owner alone can read.
type File struct{ Path string }

var _ Store = File{}

// Load implements Store.
func (f File) Load(context.Context) ([]byte, error) { return os.ReadFile(f.Path) }

// Save implements Store: the file is replaced as a whole, and stays.
func (f File) Save(_ context.Context, kubeconfig []byte) error {
	err := durable.MkdirAll(filepath.Dir(f.Path))
	if err == nil {
		err = durable.WriteFile(f.Path, kubeconfig)
	}
	if err != nil {
		return fmt.Errorf("keep the kubeconfig of the hub: %w", err)
	}
	return nil
}

// Secret keeps the kubeconfig in a Secret of the member, where an agent that
// runs in a pod reads it.
type Secret struct {
	// Member is a client of the member.
	Member client.Client
	// Namespace, Name and Key locate it.
	Namespace, Name, Key string
}

var _ Store = Secret{}

// Load implements Store.
func (s Secret) Load(ctx context.Context) ([]byte, error) {
	secret := &corev1.Secret{}
	if err := s.Member.Get(ctx, client.ObjectKey{Namespace: s.Namespace, Name: s.Name}, secret); err != nil {
		return nil, fmt.Errorf("read secret %s/%s of the member: %w", s.Namespace, s.Name, err)
	}
	return secret.Data[s.Key], nil
}

// Save implements Store.
func (s Secret) Save(ctx context.Context, kubeconfig []byte) error {
	secret := &corev1.Secret{}
	secret.Namespace, secret.Name = s.Namespace, s.Name
	updated := secret.DeepCopy()
	updated.Data = map[string][]byte{s.Key: kubeconfig}
	patch, err := client.MergeFrom(secret).Data(updated)
	if err != nil {
		return err
	}
	if err := s.Member.Patch(ctx, secret, client.RawPatch(types.MergePatchType, patch)); err != nil {
		return fmt.Errorf("keep the kubeconfig of the hub in secret %s/%s of the member: %w", s.Namespace, s.Name, err)
	}
	return nil
}
