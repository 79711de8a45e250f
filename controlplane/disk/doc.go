// Package disk watches the room that is left for what a control plane keeps, and
// says when nothing more is to be stored.
//
// In go a folder and how much of its file system must stay free; out comes whether
// there is room, as of now, and one line in the log whenever that changes. A file
// holds some room back: it gives way when there is none left, so that the store can
// still finish, compact and delete. The package refuses nothing by itself, and
// writes nothing but that file: the store's own gets room, and no content.
package disk
