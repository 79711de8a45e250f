// Package disk watches the free space of the file system that a control plane stores in, and
// decides when nothing more is to be stored.
//
// In go a folder and how much of its file system must stay free; out come whether
// there is room, as of now, and one line in the log whenever that changes. A file
// holds some space in reserve: it is deleted when none is left, so that the store can
// still finish, compact and delete. The package refuses nothing by itself, and
// writes nothing but that file; for the store's own it allocates space, and writes no content.
package disk
