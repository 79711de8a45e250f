package builder

import (
	"context"

	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Awaits reports whether a Kustomization that may not be applied yet waits with what it has applied, the artifact with the
// digest from; or else with the same content as when it was asked about before, so that no commit since then has changed
// what it reads. One that never was applied, and an artifact that cannot be read or built, are neither.
func (b *Builder) Awaits(ctx context.Context, in Input, from string) (applied, before bool) {
	if same, err := b.Same(ctx, in, from); same || err != nil || in.Kustomization.Status.LastAppliedRevision == "" {
		return same, false
	}
	key := client.ObjectKeyFromObject(in.Kustomization)
	b.mu.Lock()
	last := b.waiting[key]
	b.mu.Unlock()
	known := last.generation == in.Kustomization.Generation && last.reads != nil
	if known && last.digest == in.Digest {
		return false, true
	}
	tree, err := b.open(ctx, in)
	if err != nil {
		return false, false
	}
	same := known && last.reads.Same(tree)
	if !same { // the content that it waits with from now on may read other files than that which is applied
		last = built{generation: in.Kustomization.Generation}
		_, last.inputs, _ = b.opts.objects(ctx, b.builder, tree, in)
	}
	last.digest = in.Digest
	b.mu.Lock()
	defer b.mu.Unlock()
	b.waiting[key] = last
	return false, same
}
