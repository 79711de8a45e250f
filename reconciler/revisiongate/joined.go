package revisiongate

import (
	"slices"

	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Join has what a Kustomization wrote take effect no sooner than what others wrote, those of them that are being switched
// now: to be called before End where the revisions of all of them are written, and of one that is being deleted for
// those who take what it holds.
func (t *Tracker) Join(owner client.ObjectKey, others []client.ObjectKey) {
	t.ends.Lock()
	defer t.ends.Unlock()
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, other := range others {
		if other == owner || !t.switches(other) {
			continue
		}
		t.joined.add(owner, other)
		delete(t.resumed[owner], other)
	}
}

// joins are the Kustomizations that each one has joined.
type joins map[client.ObjectKey]map[client.ObjectKey]bool

// partners are those that a Kustomization which another replica began to switch names: they join it. Where that has written all of
// its revision, so may they have, and then their status does not say any more that they wait for it. Where it has not, it may have
// deleted what counted for their objects.
func partners(owner client.ObjectKey, ks *kustomizev1.Kustomization) []client.ObjectKey {
	stated := apimeta.FindStatusCondition(ks.Status.Conditions, Condition)
	return slices.DeleteFunc(Partners(stated.Message, ""), func(other client.ObjectKey) bool { return other == owner })
}

// leave has a Kustomization that was switched here wait for those only that it has joined here: of the others it was found out that
// they are not waited for, as they refuse their revision, for instance.
func (j joins) leave(owner client.ObjectKey, resumed joins) {
	for other := range resumed[owner] {
		delete(j[owner], other)
	}
	delete(resumed, owner)
}

func (j joins) add(owner, other client.ObjectKey) {
	if j[owner] == nil {
		j[owner] = map[client.ObjectKey]bool{}
	}
	j[owner][other] = true
}

// with are a Kustomization and those that it has joined, directly or not.
func (j joins) with(owner client.ObjectKey) []client.ObjectKey {
	return reached(owner, func(o client.ObjectKey) map[client.ObjectKey]bool { return j[o] })
}

// by are a Kustomization and those that have joined it, directly or not.
func (j joins) by(owner client.ObjectKey) []client.ObjectKey {
	return reached(owner, func(o client.ObjectKey) map[client.ObjectKey]bool {
		by := map[client.ObjectKey]bool{}
		for joining, others := range j {
			if others[o] {
				by[joining] = true
			}
		}
		return by
	})
}

// reached are a Kustomization and those that are next to it, to one of these, and so on.
func reached(owner client.ObjectKey, next func(client.ObjectKey) map[client.ObjectKey]bool) []client.ObjectKey {
	seen, out := map[client.ObjectKey]bool{owner: true}, []client.ObjectKey{owner}
	for i := 0; i < len(out); i++ {
		for o := range next(out[i]) {
			if !seen[o] {
				seen[o] = true
				out = append(out, o)
			}
		}
	}
	return out
}
