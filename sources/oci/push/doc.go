// Package push writes artifacts to container registries.
//
// In go a layer and what is said of it; out comes an artifact under a tag, as Flux's command line pushes it, so that
// either reads what the other has written. Artifacts get more tags, and signatures beside them: as what refers to them, by the registry's own list or the
// tag that stands for one, or in the tag that cosign 2 reads. What a registry has already is not sent again: a tag moves, if at all, once all that
// it leads to is there. A registry that is busy or fails is asked again a few times, no sooner than it wants. Nothing is ever deleted,
// nothing is packed or signed here, and no error shows an answer of a registry.
package push
