package history

import (
	"encoding/base64"
	"fmt"
	"strings"
)

// still checks I8: at rest nothing is written but leases.
func (j *judge) still() []string {
	var out []string
	if j.Still.For < j.AtRest {
		out = append(out, fmt.Sprintf("nobody wrote for %s, and nobody is to for %s", j.Still.For, j.AtRest))
	}
	if writes := j.Still.Revisions - j.Still.Leases; writes != 0 {
		out = append(out, fmt.Sprintf("the store has %d new revisions at rest, of which leases are %d", j.Still.Revisions, j.Still.Leases))
	}
	for _, object := range j.Still.Changed {
		out = append(out, object+" was changed at rest")
	}
	return out
}

// discreet checks I9: no text has a secret that does not belong there, as it is or as
// Secrets have it.
func (j *judge) discreet() []string {
	var out []string
	for _, text := range j.Texts {
		content := text.Content
		for _, may := range text.May {
			content = strings.ReplaceAll(content, may, "")
		}
		for _, secret := range j.Secrets {
			for _, form := range Forms(secret) {
				if strings.Contains(content, form) {
					out = append(out, fmt.Sprintf("%s shows a secret", text.Where))
				}
			}
		}
	}
	return out
}

// Forms are the ways in which a secret may stand in a text: as it is, and in base64,
// wherever it begins there.
func Forms(secret string) []string {
	out := []string{secret}
	for before := range 3 {
		// What the neighbours have a part in is left out.
		coded := base64.StdEncoding.EncodeToString([]byte(strings.Repeat("x", before) + secret))
		from := []int{0, 2, 3}[before]
		to := len(secret) + before
		out = append(out, coded[from:to/3*4])
	}
	return out
}

// A program at rest may need a little more than before: what came and went leaves
// caches behind, and a heap grows in steps.
const (
	moreGoroutines = 30
	moreMemory     = 64 << 20
)

// modest checks I10: programs need no more at rest than before.
func (j *judge) modest() []string {
	var out []string
	for _, p := range j.Programs {
		if most := p.Before.Goroutines + p.Before.Goroutines/10 + moreGoroutines; p.After.Goroutines > most {
			out = append(out, fmt.Sprintf("%s has %d goroutines at rest, and had %d", p.Name, p.After.Goroutines, p.Before.Goroutines))
		}
		if most := p.Before.Memory + p.Before.Memory/4 + moreMemory + p.Garbage; p.After.Memory > most {
			out = append(out, fmt.Sprintf("%s has %d MiB at rest, and had %d", p.Name, p.After.Memory>>20, p.Before.Memory>>20))
		}
		if p.After.Goroutines == 0 || p.After.Memory == 0 || p.Before.Goroutines == 0 || p.Before.Memory == 0 {
			out = append(out, "nobody has looked what "+p.Name+" needs")
		}
	}
	return out
}
