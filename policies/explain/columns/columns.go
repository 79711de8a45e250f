// Package columns aligns text in columns for people.
//
// In go rows of cells; out come lines of at most Width columns, unless a word is
// longer.
package columns

import (
	"fmt"
	"io"
	"strings"
	"unicode/utf8"
)

// Width is the largest width of a line, in columns, where the writer is not
// Sized.
const Width = 100

// Sized is a writer with a width of its own.
type Sized interface{ Width() int }

// Table aligns cells in columns. A last cell that is too long is continued on the
// lines below it. The zero value has no rows.
type Table struct {
	rows []row
	// Right are the columns, from 0, that are aligned to the right, as numbers
	// are.
	Right map[int]bool
	// Plain means that there is no header.
	Plain bool
	// Hangs indents continued lines further than the last cell begins: so no text
	// that is quoted from elsewhere can look like the beginning of a row.
	Hangs bool
}

type row struct {
	cells []string
	whole bool
}

// Add adds a row of at least one cell.
func (t *Table) Add(cells ...string) { t.rows = append(t.rows, row{cells: cells}) }

// AddWhole adds a row whose last cell stays on one line, however long it is: a
// command in it can then be copied.
func (t *Table) AddWhole(cells ...string) { t.rows = append(t.rows, row{cells, true}) }

// Rows returns the number of rows.
func (t *Table) Rows() int { return len(t.rows) }

// Write writes the rows in their order, on lines of Width columns, or of w's own
// width if it is Sized.
func (t *Table) Write(w io.Writer) {
	room := Width
	if sized, ok := w.(Sized); ok {
		room = sized.Width()
	}
	var wide []int
	for _, row := range t.rows {
		for i, cell := range row.cells[:len(row.cells)-1] {
			if i == len(wide) {
				wide = append(wide, 0)
			}
			wide[i] = max(wide[i], utf8.RuneCountInString(cell))
		}
	}
	for _, row := range t.rows {
		var line strings.Builder
		last := len(row.cells) - 1
		for i, cell := range row.cells[:last] {
			line.WriteString(pad(cell, wide[i], t.Right[i]) + "  ")
		}
		indent := utf8.RuneCountInString(line.String())
		if t.Hangs {
			indent += hanging
		}
		columns := room - indent
		if row.whole {
			columns = utf8.RuneCountInString(row.cells[last])
		}
		for i, part := range wrap(row.cells[last], columns) {
			if i > 0 {
				line.WriteString("\n" + strings.Repeat(" ", indent))
			}
			line.WriteString(part)
		}
		for part := range strings.SplitSeq(line.String(), "\n") {
			_, _ = fmt.Fprintln(w, strings.TrimRight(part, " "))
		}
	}
}

// hanging is by how many columns continued lines are indented further if Hangs is
// set.
const hanging = 4

func pad(cell string, wide int, right bool) string {
	space := strings.Repeat(" ", wide-utf8.RuneCountInString(cell))
	if right {
		return space + cell
	}
	return cell + space
}

// narrow is the least width of the last column, however little is left.
const narrow = 30

// wrap splits text at spaces into lines of at most columns, except for longer
// words.
func wrap(text string, columns int) []string {
	columns = max(columns, narrow)
	var lines []string
	line := ""
	for word := range strings.FieldsSeq(text) {
		if line != "" && utf8.RuneCountInString(line)+1+utf8.RuneCountInString(word) > columns {
			lines, line = append(lines, line), ""
		}
		line = strings.TrimPrefix(line+" "+word, " ")
	}
	return append(lines, line)
}
