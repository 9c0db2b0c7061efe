"""Files as people keep them."""

import click
import pytest

from core.commands.usernames import read_usernames


@pytest.mark.parametrize(
    "content",
    [
        b"ada\nbob\n",
        b"@ada\r\n\r\n  \r\n@Bob\r\n",
        b"\xef\xbb\xbfusername\nada\nbob",
        b"id,Username ,note\n1,ada,x\n2,bob\n",
        b"username;note\nada;x\nbob;y\n",
        b"note\tusername\nx\tada\ny\tbob\n",
        b'"ada","said ""hi"",\nthen left"\n"bob",""\n',
        b"https://www.instagram.com/ada/?hl=en\ninstagram.com/bob\n",
        b"handle\nada\nbob",
        "username,é\nada,ü\nbob,ß\n".encode("utf-16"),
        b"ada, first\nbob, second\n",
    ],
    ids=[
        "list",
        "@names and empty lines",
        "byte order mark",
        "a column among others",
        "semicolons",
        "tabs",
        "quotes",
        "addresses",
        "another header",
        "UTF-16",
        "the first column",
    ],
)
def test_names_are_found_in_whatever_people_keep_them(content):
    names = read_usernames(content)

    assert (names.accepted, names.rejected) == (["ada", "bob"], [])


def test_what_names_nobody_is_left_out_with_its_line_and_a_reason():
    names = read_usernames(
        b"username\nada\nnot a name\n@ADA\n" + "\N{CYRILLIC SMALL LETTER A}da\n".encode() + b",x\nbob\n"
    )

    assert names.accepted == ["ada", "bob"]
    assert [(row.line, row.reason) for row in names.rejected] == [
        (3, "not a username, nor the address of a profile"),
        (4, "the same as on line 2"),
        (5, "not a username, nor the address of a profile"),
        (6, "not a username, nor the address of a profile"),
    ]
    assert names.rejected[0].text == "not a name"


def test_a_header_is_said_to_be_one():
    assert read_usernames(b"handle\nada").header == "handle"
    assert read_usernames(b"ada\nhandle").header is None
    assert read_usernames(b"ada\nhandle").accepted == ["ada", "handle"]


@pytest.mark.parametrize("content", [b"", b"\n\n", b"username\n"])
def test_a_file_without_anybody_is_no_mistake_here(content):
    assert read_usernames(content).accepted == []


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"\x89PNG\xff", "UTF-8"),
        (b"a" * 200_000, "cannot be read"),
        (b"a\n" * 5_000_001, "larger than 10 MB"),
    ],
    ids=["a picture", "an endless cell", "a large file"],
)
def test_what_is_no_list_at_all_is_refused(content, said):
    with pytest.raises(click.ClickException, match=said):
        read_usernames(content)


def test_orders_to_the_terminal_do_not_reach_it():
    rejected = read_usernames(b"ada\n\x1b[2Jevil\n").rejected

    assert "\x1b" not in rejected[0].text
