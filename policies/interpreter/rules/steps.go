package rules

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"
)

// Same sets texts to what all clusters that report say, and removes those that
// they do not agree on, and what is no text.
func Same(fields ...string) Step {
	return agreement(fields, func(v any) bool {
		text, ok := v.(string)
		return ok && len(text) <= mostText
	})
}

// Alike is Same for fields of any type.
func Alike(fields ...string) Step {
	return agreement(fields, func(any) bool { return true })
}

func agreement(fields []string, takes func(any) bool) Step {
	return func(status map[string]any, r Reports) {
		for _, field := range fields {
			delete(status, field)
			if v, ok := unanimous(r, field); ok && takes(v) {
				status[field] = v
			}
		}
	}
}

func unanimous(r Reports, field string) (any, bool) {
	var value any
	for _, p := range r.Parts {
		if p.Status == nil {
			continue
		}
		v := p.Status[field]
		if v == nil || value != nil && !reflect.DeepEqual(v, value) {
			return nil, false
		}
		value = v
	}
	return value, value != nil
}

// First sets fields to what the first cluster says that has them: for what is the
// same in every cluster, or of use only as an example.
func First(fields ...string) Step {
	return func(status map[string]any, r Reports) {
		for _, field := range fields {
			delete(status, field)
			for _, p := range r.Parts {
				if v := p.Status[field]; v != nil {
					status[field] = v
					break
				}
			}
		}
	}
}

// Worst sets the text at a path to the first of the words that any cluster
// says there; one that says nothing counts as missing. Other words are removed.
func Worst(path, missing string, words ...string) Step {
	return func(status map[string]any, r Reports) {
		if word := worstOf(r, path, missing, words); word != "" {
			Put(status, word, split(path)...)
		} else if parent := Object(status, split(path)[:len(split(path))-1]...); parent != nil {
			delete(parent, split(path)[len(split(path))-1])
		}
	}
}

func worstOf(r Reports, path, missing string, words []string) string {
	seen := map[string]bool{}
	for _, p := range r.Parts {
		seen[cmp.Or(Text(p.Status, split(path)...), missing)] = true
	}
	for _, word := range words {
		if seen[word] {
			return word
		}
	}
	return ""
}

// FromWorst sets a field to what the cluster says there whose text at a path is
// the worst: the whole field then comes from one cluster.
func FromWorst(field, path, missing string, words ...string) Step {
	return func(status map[string]any, r Reports) {
		delete(status, field)
		word := worstOf(r, path, missing, words)
		for _, p := range r.Parts {
			if v := p.Status[field]; v != nil && word != "" && cmp.Or(Text(p.Status, split(path)...), missing) == word {
				status[field] = v
				return
			}
		}
	}
}

// Earliest sets times to the first that any cluster reports.
func Earliest(fields ...string) Step { return times(fields, false, before) }

// Latest sets times to the last that any cluster reports.
func Latest(fields ...string) Step { return times(fields, false, after) }

// Ended sets times to the last once every cluster reports one.
func Ended(fields ...string) Step { return times(fields, true, after) }

func before(a, b string) bool { return a < b }
func after(a, b string) bool  { return a > b }

func times(fields []string, all bool, wins func(a, b string) bool) Step {
	return func(status map[string]any, r Reports) {
		for _, field := range fields {
			chosen, count := "", 0
			for _, p := range r.Parts {
				at := Time(p.Status, field)
				if at == "" {
					continue
				}
				if count++; chosen == "" || wins(at, chosen) {
					chosen = at
				}
			}
			delete(status, field)
			if count > 0 && (!all || count == len(r.Parts)) {
				status[field] = chosen
			}
		}
	}
}

// Quote sets texts to what clusters say, naming them where they do not all say
// the same.
func Quote(fields ...string) Step {
	return func(status map[string]any, r Reports) {
		for _, field := range fields {
			delete(status, field)
			if v, ok := unanimous(r, field); ok {
				if text, ok := v.(string); ok && len(text) <= mostText {
					status[field] = text
					continue
				}
			}
			if text := quote(r, field); text != "" {
				status[field] = text
			}
		}
	}
}

func quote(r Reports, field string) string {
	var out []string
	for _, p := range r.Parts {
		said := Text(p.Status, field)
		if said == "" {
			continue
		}
		if len(out) == mostNamed {
			return strings.Join(append(out, "…"), "; ")
		}
		out = append(out, p.Cluster+": "+cut(said, mostMessage))
	}
	return strings.Join(out, "; ")
}

// Tally adds up all numbers below fields, name by name. The fields are always
// objects: some schemas ask for them.
func Tally(fields ...string) Step {
	return func(status map[string]any, r Reports) {
		for _, field := range fields {
			sum := map[string]any{}
			for _, p := range r.Parts {
				tallyInto(sum, Object(p.Status, field))
			}
			status[field] = sum
		}
	}
}

func tallyInto(sum, part map[string]any) {
	for name, v := range part {
		switch v := v.(type) {
		case map[string]any:
			below, ok := sum[name].(map[string]any)
			if !ok {
				below = map[string]any{}
			}
			tallyInto(below, v)
			if len(below) > 0 {
				sum[name] = below
			}
		case int64, float64:
			if _, taken := sum[name].(map[string]any); !taken {
				sum[name] = min(Number(sum, name)+min(max(Number(part, name), 0), math.MaxInt32), math.MaxInt32)
			}
		}
	}
}

// Amount reads an amount as Kubernetes writes it: text or a number.
func Amount(v any) (resource.Quantity, error) {
	switch v := v.(type) {
	case string:
		return Quantity(v)
	case int64:
		return Quantity(strconv.FormatInt(v, 10))
	case float64:
		return Quantity(strconv.FormatFloat(v, 'f', -1, 64))
	default:
		return resource.Quantity{}, fmt.Errorf("%T is no amount", v)
	}
}

// Amounts adds up amounts; one that is zero or no amount adds nothing.
func Amounts(fields ...string) Step {
	return func(status map[string]any, r Reports) {
		for _, field := range fields {
			var sum resource.Quantity
			for _, p := range r.Parts {
				if q, err := Amount(p.Status[field]); err == nil {
					sum.Add(q)
				}
			}
			delete(status, field)
			if !sum.IsZero() {
				status[field] = sum.String()
			}
		}
	}
}

// Greatest sets numbers to the greatest that any cluster reports.
func Greatest(fields ...string) Step {
	return func(status map[string]any, r Reports) {
		for _, field := range fields {
			most := int64(0)
			for _, p := range r.Parts {
				most = max(most, min(Number(p.Status, field), math.MaxInt32))
			}
			status[field] = most
		}
	}
}

// Everywhere sets booleans to whether they are true in every cluster.
func Everywhere(fields ...string) Step {
	return func(status map[string]any, r Reports) {
		for _, field := range fields {
			all := len(r.Parts) > 0
			for _, p := range r.Parts {
				all = all && Bool(p.Status, field)
			}
			status[field] = all
		}
	}
}

// Shorten shortens a list to its first entries.
func Shorten(field string, n int) Step {
	return func(status map[string]any, _ Reports) {
		if l := List(status, field); len(l) > n {
			status[field] = l[:n]
		}
	}
}

// Default sets fields that a schema asks for and that no step has set.
func Default(defaults map[string]any) Step {
	return func(status map[string]any, _ Reports) {
		for field, v := range defaults {
			if status[field] == nil {
				status[field] = v
			}
		}
	}
}

// Entries merges the entries of a list that have the same keys in several
// clusters, taking the steps for each; a cluster without the entry reports
// nothing about it. No more than so many come out, and the list is always there.
func Entries(field string, most int, keys []string, steps ...Step) Step {
	return func(status map[string]any, r Reports) {
		found := map[string]map[string]any{}
		parts := make([]map[string]map[string]any, len(r.Parts))
		for i, p := range r.Parts {
			parts[i] = map[string]map[string]any{}
			for _, entry := range Objects(p.Status, field) {
				key, id := identity(entry, keys)
				found[key], parts[i][key] = id, entry
			}
		}
		was := map[string]map[string]any{}
		for _, entry := range Objects(status, field) {
			key, _ := identity(entry, keys)
			was[key] = entry
		}
		out := []any{}
		for _, key := range slices.Sorted(maps.Keys(found)) {
			if len(out) == most {
				break
			}
			merged := maps.Clone(found[key])
			if now := List(was[key], "conditions"); now != nil {
				merged["conditions"] = now
			}
			below := Reports{Template: r.Template}
			for i, p := range r.Parts {
				below.Parts = append(below.Parts, Part{Cluster: p.Cluster, Status: dated(parts[i][key], p.Status)})
			}
			for _, s := range steps {
				s(merged, below)
			}
			out = append(out, merged)
		}
		status[field] = out
	}
}

// identity returns the fields of an entry that tell it from others, and a text
// for them.
func identity(entry map[string]any, keys []string) (string, map[string]any) {
	id := map[string]any{}
	for _, key := range keys {
		if v := entry[key]; v != nil {
			id[key] = v
		}
	}
	text, err := json.Marshal(id)
	if err != nil {
		return "", id // it was decoded from JSON
	}
	return string(text), id
}

// dated adds to an entry which spec the status around it is about.
func dated(entry, status map[string]any) map[string]any {
	if entry == nil {
		return nil
	}
	out := maps.Clone(entry)
	for _, field := range []string{FieldGeneration, FieldTemplateGeneration} {
		out[field] = status[field]
	}
	return out
}

// split reads a path that is written with points.
func split(path string) []string { return strings.Split(path, ".") }
